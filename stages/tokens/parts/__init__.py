"""What the models of the family are made of: token mixers, and the frame around them."""
