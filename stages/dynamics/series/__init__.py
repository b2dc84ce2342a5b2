"""Real series forecast as systems are (document R, chapter 6): tables of numbers at equal times."""
