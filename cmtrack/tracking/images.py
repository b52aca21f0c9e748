"""PNG images that MLflow saves without compressing them again."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from PIL.Image import Image
from PIL.PngImagePlugin import PngImageFile


class DrawnImage(PngImageFile):
    """A PNG image whose file is copied when it is saved, instead of being compressed again.

    Thumbnails are resized in two steps, which is faster than one step.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        super().__init__(BytesIO(content))

    def save(self, fp: Any, *_: Any, **__: Any) -> None:
        """Write the unchanged content to a file."""
        Path(fp).write_bytes(self.content)

    def resize(self, size: Any, *args: Any, **options: Any) -> Image:
        """Resize from an intermediate image that is about twice as large as the result."""
        return super().resize(size, *args, **{"reducing_gap": 2.0} | options)
