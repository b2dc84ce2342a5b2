"""The audit of a published number: from the value in git back to the raw bytes. Judges of a family
import what they share of it alone (agreeing.py), so that nothing is loaded here."""
