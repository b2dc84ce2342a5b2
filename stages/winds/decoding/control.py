"""Negative controls: how often the decoder accepts a Comm-B payload that cannot be what the
aircraft said.

The headers, addresses and moments of real replies of the capture are kept and the 56 bits of
payload replaced: by random bits (damage that the parity missed), or by the payload of another
aircraft's reply (an address confused). The new replies then go through exactly the path of the old
ones, with the same ADS-B evidence. What is accepted is accepted falsely, so the shares are upper
bounds of what such damage does; they need no truth and can be had of any capture. A swapped payload
is judged as what it was: most replies hold no 5,0 or 6,0, and to refuse those is no merit.
"""

import numpy as np
import polars as pl

from stages import seeds
from stages.params import Decode
from stages.winds.decoding import states
from stages.winds.modes import bits, crc, messages

FRAMES = 20_000  # at most
REGISTERS = ("50", "60")


def _encode(header: np.ndarray, payload: np.ndarray, address: np.ndarray) -> pl.Series:
    """Hexadecimal text of Comm-B replies: header [N, 4], payload [N, 7] bytes, parity overlaid
    with the address [N] uint32."""
    octets = np.concatenate([header, payload, np.zeros((len(header), 3), np.uint8)], axis=1)
    parity = crc.remainder(np.ascontiguousarray(octets.T)) ^ address
    octets[:, 11:] = parity.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:]
    text = octets.tobytes().hex().upper()
    return pl.Series([text[i : i + 28] for i in range(0, len(text), 28)], dtype=pl.String)


def run(
    decoded: pl.DataFrame, registers: pl.DataFrame, decode: Decode
) -> dict[str, dict[str, int]]:
    """False acceptance in a decoded and confirmed time span whose `registers` were found
    (states.Assembled.registers).

    random_payload: {"frames", "accepted_50", "accepted_60"}. swapped_payload: {"frames",
    "payloads_R", "accepted_R", "accepted_otherwise"}: of `frames` payloads, `payloads_R` were
    accepted as register R (50, 60) of the aircraft that sent them; of those `accepted_R` are
    accepted as R of another aircraft too; `accepted_otherwise` counts those now read as an R they
    were not.
    """
    good = decoded.filter(pl.col("drop").is_null() | pl.col("drop").str.starts_with("bds_"))
    replies = good.filter(pl.col("df").is_in(states.COMM_B) & ~pl.col("carried")).sort(
        states.FILE_ORDER
    )
    rng = seeds.stream(0, "decode", "control")
    if len(replies) > FRAMES:
        replies = replies[np.sort(rng.choice(len(replies), FRAMES, replace=False))]
    others = good.filter(~pl.col("df").is_in(states.COMM_B))
    if replies.is_empty():
        return {}
    found = registers.filter(pl.col("drop").is_null()).select("file", "record", was="bds")
    was = replies.select("file", "record").join(
        found, on=["file", "record"], how="left", maintain_order="left"
    )["was"]
    octets, _ = bits.parse_hex(bits.characters(replies["hex"], 28))
    address = replies["icao"].str.to_integer(base=16).to_numpy().astype(np.uint32)
    order = rng.permutation(len(replies))
    swapped = address[order] != address
    payloads = {
        "random_payload": (
            rng.integers(0, 256, (len(replies), 7), dtype=np.uint8),
            np.ones(len(replies), bool),
        ),
        "swapped_payload": (octets[order, 4:11], swapped),
    }
    result: dict[str, dict[str, int]] = {}
    for name, (payload, chosen) in payloads.items():
        text = _encode(octets[chosen, :4], payload[chosen], address[chosen])
        fake = pl.concat(
            [
                replies.filter(chosen).select("ts_s", "file", "record", "carried"),
                messages.decode(text),
            ],
            how="horizontal",
        )
        fake = fake.with_columns(hex=text)
        again = states.assemble(
            pl.concat([others, fake.select(others.columns)]), decode
        ).registers.filter(pl.col("drop").is_null())
        result[name] = {"frames": int(chosen.sum())}
        if name == "random_payload":
            result[name] |= {f"accepted_{r}": int((again["bds"] == r).sum()) for r in REGISTERS}
        else:
            before = fake.select("file", "record", was=was[order].filter(chosen))
            result[name] |= _as_before(before, again)
    return result


def _as_before(before: pl.DataFrame, again: pl.DataFrame) -> dict[str, int]:
    """Swapped payloads by what they were (`before`: file, record, was) and what they are
    accepted as now (`again`)."""
    now = before.join(again.select("file", "record", "bds"), on=["file", "record"], how="left")
    same = pl.col("bds").eq_missing(pl.col("was"))
    counts = {}
    for register in REGISTERS:
        counts[f"payloads_{register}"] = now.filter(pl.col("was") == register).height
        counts[f"accepted_{register}"] = now.filter((pl.col("was") == register) & same).height
    return counts | {
        "accepted_otherwise": now.filter(pl.col("bds").is_in(REGISTERS) & ~same).height
    }
