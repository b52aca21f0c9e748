"""Parts of the reproduction of Gubbels (2023), chapter 2: websites, machines, variants, published numbers."""
