"""The experiment on neural processes (document N): tasks that are drawn, models that answer with a
law, and what is measured of them. Its models stand in stages/fields/models, its tasks in
stages/fields/problems/functions."""
