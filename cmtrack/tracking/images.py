"""A picture that MLflow saves without compressing it again."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from PIL.Image import Image
from PIL.PngImagePlugin import PngImageFile


class DrawnImage(PngImageFile):
    """A PNG file that is copied when it is saved, while Pillow would compress it again.

    Thumbnails are made in two steps, which is faster.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        super().__init__(BytesIO(content))

    def save(self, fp: Any, *_: Any, **__: Any) -> None:
        """Write the unchanged content to a file."""
        Path(fp).write_bytes(self.content)

    def resize(self, size: Any, *args: Any, **options: Any) -> Image:
        """Resize from an intermediate image of about twice that size."""
        return super().resize(size, *args, **{"reducing_gap": 2.0} | options)
