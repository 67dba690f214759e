"""How colours look: contrast, and how far two colours are apart for eyes of any kind."""

import itertools

import numpy as np

NORMAL = np.eye(3)
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)
"""No cones for green. Source: Machado et al. 2009, severity 1.0, on linear RGB."""
PROTANOPIA = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)
"""No cones for red. Source: as above."""
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.119192, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def _linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two ``#rrggbb``, 1 to 21. Source: WCAG 2.1."""
    low, high = sorted(float(_linear(colour) @ _TO_XYZ[1]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, eyes: np.ndarray = NORMAL) -> tuple[float, float, float]:
    """CIELAB of ``#rrggbb`` as these eyes see it, under D65."""
    xyz = _TO_XYZ @ np.clip(eyes @ _linear(colour), 0, 1) / _WHITE
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return float(116 * y - 16), float(500 * (x - y)), float(200 * (y - z))


def difference(one: str, other: str, eyes: np.ndarray = NORMAL) -> float:
    """CIEDE2000 of two ``#rrggbb``; 1 is just seen side by side. Source: Sharma et al. 2005."""
    (l1, a1, b1), (l2, a2, b2) = lab(one, eyes), lab(other, eyes)
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1 + 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25**7)))
    c1, c2 = np.hypot(a1 * stretch, b1), np.hypot(a2 * stretch, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a * stretch)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180
    light, chroma, hue = (l1 + l2) / 2, (c1 + c2) / 2, (h1 + turn / 2) % 360
    waves = ((0.17, 1, -30, -1), (0.24, 2, 0, 1), (0.32, 3, 6, 1), (0.2, 4, -63, -1))
    shape = 1 + sum(sign * size * np.cos(np.radians(times * hue + shift)) for size, times, shift, sign in waves)
    in_light = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    in_chroma = (c2 - c1) / (1 + 0.045 * chroma)
    in_hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * chroma * shape)
    blue = -2 * np.sqrt(chroma**7 / (chroma**7 + 25**7)) * np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    return float(np.sqrt(in_light**2 + in_chroma**2 + in_hue**2 + blue * in_chroma * in_hue))


def nearest(colours: tuple[str, ...], eyes: np.ndarray = NORMAL) -> float:
    """The smallest difference between any two of the colours."""
    return min(difference(one, other, eyes) for one, other in itertools.combinations(colours, 2))
