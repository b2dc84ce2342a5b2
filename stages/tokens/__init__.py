"""Token mixing: HyperMixing and its rivals in one frame, on sentence pairs, shapes and pictures
drawn from statements (thesis chapter 2 and appendix B; slides)."""
