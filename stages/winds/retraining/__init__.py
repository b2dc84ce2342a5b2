"""Retraining on captures as they arrive: taken in, watched for drift, challenger against
champion, all in a ledger."""
