"""The parts of the article on multiclass metrics and kappa: its numbers, its tables of ratings, figures of kappa."""
