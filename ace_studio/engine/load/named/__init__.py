"""Models of installed packages, opened by name: ``timm:resnet18``, ``torchvision:ssd300_vgg16``."""
