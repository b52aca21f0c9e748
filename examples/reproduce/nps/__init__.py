"""Parts of the reproduction of Markoulidakis et al. (2021): surveys, algorithms, reductions, tables and figures."""
