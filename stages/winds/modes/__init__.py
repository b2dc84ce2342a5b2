"""Raw Mode-S frames to columns: hexadecimal text in, one row of physical quantities per frame out.

Formats: ICAO Annex 10 Volume IV (frames, CRC, altitude code), ICAO Doc 9871 (Comm-B registers),
RTCA DO-260B (ADS-B). Everything works on whole columns; nothing here looks at one frame at a time.
Entry: `messages.decode` and `frames.read`.
"""
