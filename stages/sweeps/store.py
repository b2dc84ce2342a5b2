"""Where the draws of a sweep are kept until its outputs stand: an SQLite file of this machine, or a
PostgreSQL database that many share.

The file is .work/sweeps/<key>/study.db; the database is named by TRADEWIND_SWEEPS_URL, and its
study by the key: a hash of all that decides the result (records.key), so that a changed sweep never
finds another's draws. No message names the URL's password.
"""

import os
import shutil
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.storages import RDBStorage
from sqlalchemy.exc import SQLAlchemyError

from stages.errors import DataError, InputError
from stages.files import WORK, atomic_folder

URL = "TRADEWIND_SWEEPS_URL"
# s; a worker that misses five signs counts as dead. Too early costs a draw made twice, never a
# wrong count
BEAT_S, GRACE_S = (2, 10)
BUSY_S = 60  # how long SQLite waits for another's transaction
LOCK = 0x7472_6164  # PostgreSQL's advisory lock under which the tables are made


@dataclass(frozen=True)
class Store:
    """The place of one study. `url` is PostgreSQL's, None for a file of this machine."""

    key: str
    url: str | None = field(default=None, repr=False)
    beat_s: int = BEAT_S
    grace_s: int = GRACE_S

    @classmethod
    def named(cls, key: str) -> "Store":
        """As the environment says. InputError for a URL that is none of PostgreSQL's."""
        url = os.environ.get(URL) or None
        if url is not None:
            check(url)
        return cls(key, url)

    @property
    def folder(self) -> Path:
        """Where the file lies."""
        return WORK / "sweeps" / self.key

    @property
    def local(self) -> bool:
        """Whether only processes of this machine can be at work on it."""
        return self.url is None

    def make(self) -> None:
        """Make file or tables, whole or not at all; what is there stays. InputError when the
        database cannot be reached."""
        if self.url is None:
            if not (self.folder / "study.db").exists():
                with atomic_folder(self.folder) as temporary:
                    storage = self._storage(f"sqlite:///{temporary}/study.db")
                    storage.engine.dispose()
            return
        engine = sqlalchemy.create_engine(self.url)
        try:
            with (
                engine.begin() as connection
            ):  # sweeps that start side by side on a new database would both make the tables
                connection.execute(
                    sqlalchemy.text("select pg_advisory_xact_lock(:lock)"), {"lock": LOCK}
                )
                self._storage(self.url).engine.dispose()
        except (SQLAlchemyError, ImportError) as error:
            raise InputError(
                "the sweeps' database cannot be used",
                where=public_url(self.url),
                found=hidden(error, self.url),
                remedy=f"mend {URL}, or unset it: sweeps are then kept in {WORK / 'sweeps'}",
            ) from None
        finally:
            engine.dispose()

    def storage(self) -> RDBStorage:
        """An open connection to what `make` made."""
        return self._storage(self.url or f"sqlite:///{self.folder}/study.db")

    def study(
        self, sampler: optuna.samplers.BaseSampler, pruner: optuna.pruners.BasePruner, begin: bool
    ) -> optuna.Study:
        """The study; `begin`: made where there is none. InputError where there is none,
        DataError for a file that is no database."""
        try:
            storage = self.storage()
            if begin:
                return optuna.create_study(
                    storage=storage,
                    study_name=self.key,
                    direction="minimize",
                    sampler=sampler,
                    pruner=pruner,
                    load_if_exists=True,
                )
            return optuna.load_study(
                storage=storage, study_name=self.key, sampler=sampler, pruner=pruner
            )
        except KeyError:
            where = public_url(self.url) if self.url else str(self.folder)
            raise InputError(
                "there is no such sweep to join",
                where=where,
                found="no study of this key",
                expected="the same code, parameters and prepared data as where the sweep was "
                "started",
                remedy="start the sweep (without --join) first; it may also have ended",
            ) from None
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
            where, remedy = (
                (public_url(self.url), f"see {URL}")
                if self.url
                else (str(self.folder), "remove that folder; the sweep starts anew")
            )
            raise DataError(
                "the sweep's store cannot be read",
                where=where,
                found=hidden(error, self.url),
                remedy=remedy,
            ) from None

    def clear(self) -> None:
        """Remove the study: its outputs stand."""
        if self.url is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        storage = self.storage()
        optuna.delete_study(study_name=self.key, storage=storage)
        storage.engine.dispose()

    def _storage(self, url: str) -> RDBStorage:
        given = (
            {"connect_args": {"timeout": BUSY_S}} if self.url is None else {"pool_pre_ping": True}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # heartbeats are
            storage = RDBStorage(
                url, engine_kwargs=given, heartbeat_interval=self.beat_s, grace_period=self.grace_s
            )
        if self.url is None:
            one_writer(storage.engine)
        return storage


def one_writer(engine: sqlalchemy.Engine) -> None:
    """Let every transaction of an SQLite engine lock the file as it begins.

    SQLite has no lock on rows: of two workers that read a waiting trial, both would take it.
    """

    def own(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # Python's driver begins no transaction of its own

    sqlalchemy.event.listen(engine, "connect", own)
    sqlalchemy.event.listen(
        engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE")
    )
    engine.dispose()  # connections that were opened before


def check(url: str) -> None:
    """InputError unless a URL is one of PostgreSQL's."""
    try:
        driver = sqlalchemy.make_url(url).get_backend_name()
    except SQLAlchemyError:
        driver = "text that is no URL"
    if driver != "postgresql":
        raise InputError(
            "sweeps are shared by PostgreSQL only",
            where=URL,
            found=driver,
            expected="postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        )


def public_url(url: str) -> str:
    """A URL without user, password and options."""
    parts = sqlalchemy.make_url(url)
    return (
        f"{parts.drivername}:/"
        f"/{parts.host or ''}{f':{parts.port}' if parts.port else ''}/{parts.database or ''}"
    )


def hidden(error: BaseException, url: str | None) -> str:
    """An error's first line, without the URL's passwords."""
    text = str(error).strip().partition("\n")[0]
    if url is not None:
        parts = sqlalchemy.make_url(url)
        for secret in (url, parts.password, *parts.query.values()):
            text = text.replace(str(secret), "***") if secret else text
    return text
