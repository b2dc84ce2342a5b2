"""Contexts: which measured winds a forecast may see, and as what batch a model reads them."""
