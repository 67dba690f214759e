"""The user's loss: whether what it gives can be averaged, and trained by."""

from torch import Tensor

from ace_studio.records.errors import AceError, ErrorCode


def scalar_loss(value: object) -> Tensor:
    """The loss, if it is one number in a tensor. Raises: AceError(USER_CODE) if it is not."""
    if isinstance(value, Tensor) and value.numel() == 1:
        return value
    found = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
    raise AceError.of(
        ErrorCode.USER_CODE,
        f"The loss gave {found}, not one number",
        why="training needs one number that depends on the outputs by operations of torch",
        remedy="Return for example torch.nn.functional.cross_entropy(output, label).",
        where="[finetune] loss",
    )


def differentiable_loss(value: object) -> Tensor:
    """The loss, if it is one number with a gradient. Raises: AceError(USER_CODE) if it is not."""
    loss = scalar_loss(value)
    if loss.requires_grad:
        return loss
    raise AceError.of(
        ErrorCode.USER_CODE,
        "The loss does not depend on the weights",
        why="it was computed without gradients, so it cannot say how to change a weight",
        remedy="Compute it from the outputs by operations of torch, without .item(), .detach() or numpy.",
        where="[finetune] loss",
    )
