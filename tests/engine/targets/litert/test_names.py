"""Names of tensors say which ops made them."""

from ace_studio.engine.targets.litert.names import ids_in, name_of


def test_the_ops_are_read_from_the_joined_names_of_a_fusion():
    assert ids_in(f"{name_of('relu')};;{name_of('conv2d_1')};1") == ["relu", "conv2d_1"]
    assert ids_in(f"{name_of('relu')};{name_of('relu')};2") == ["relu"]
    assert ids_in("serving_default_args_0") == []
