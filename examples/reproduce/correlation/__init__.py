"""Parts of the reproduction of Gubbels (2023), chapter 1."""
