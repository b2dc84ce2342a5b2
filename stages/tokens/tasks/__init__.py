"""The generated tasks: sentence pairs, shapes, pictures. Without torch."""
