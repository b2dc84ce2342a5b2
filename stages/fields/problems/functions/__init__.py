"""Tasks of neural processes (document N, sections 5.1 and 6.1): a function is drawn, some of its
values are the context, others the targets."""
