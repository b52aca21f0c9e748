"""The section on the data and what stands in for them."""

from __future__ import annotations

import numpy as np

from rare_events import published
from rare_events.methods import Data
from study import Study


def introduction(study: Study, data: Data) -> None:
    """The stand-in for the data."""
    layout = data.layout
    words = np.asarray(data.target.counts.sum(axis=1)).ravel()
    study.heading("The data, and what stands in for them")
    study.text(
        f"The thesis counts platforms among scraped websites of Dutch companies: {published.ALL_POSITIVES} platforms "
        f"and {published.ALL_NEGATIVES} others, {100 * published.ALL_POSITIVES / published.ALL_NEGATIVES:.2f}%. These "
        "data are not public. Websites are drawn here instead, as counts of words in two languages with Zipf's "
        "frequencies. Each has a theme; platforms use platform words to a share that differs much; "
        f"{100 * layout.web.lookalikes:.0f}% of the others resemble platforms.",
        f"The target holds {layout.positives} platforms and {layout.negatives} others, with {np.median(words):.0f} "
        f"words in the median. Machines are trained on {published.TRAINED_POSITIVES} platforms and "
        f"{published.TRAINED_NEGATIVES['state of the art']} others (state of the art) or "
        f"{published.TRAINED_NEGATIVES['class weights']} others (the three other methods), as in section 2.2. Section "
        f"2.1.1 gives {' + '.join(map(str, published.STATE_OF_THE_ART_SET))} for the first, so that it is unclear "
        "which one was used.",
        f"The thesis had {published.ALL_POSITIVES - published.TRAINED_POSITIVES - published.ACTUAL_POSITIVES} labelled "
        "platforms and more than 500,000 labelled others in neither the training sets nor the target. "
        f"{layout.held_positives} and {layout.held_negatives} are drawn here, to calibrate with scores that are held "
        "out.",
        "Difficulty and the target were chosen once, so that the state of the art's AUROC comes near the published "
        "one. All else follows from that and was not fitted. Numbers of predicted positives depend on the whole "
        "distribution of scores, and differ; what is compared are the patterns. Training sets, and the many draws "
        "further down, were not chosen.",
    )
