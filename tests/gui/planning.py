"""Clicks in the tree of modules and the rules of the plan."""

from ace_studio.records.recipes.plan import Precision

INT8 = Precision.INT8_STATIC


def rules(desk):
    return [(rule.match, str(rule.precision)) for rule in desk.document.recipe.plan.rules]


def item_of(layered_plan, path):
    """The row of a module, after the modules around it were opened."""
    items = layered_plan.precision.modules._items
    for end in range(1, path.count(".") + 1):
        items[".".join(path.split(".")[:end])].setExpanded(True)
    return items[path]


def trigger(menu, text):
    next(action for action in menu.actions() if action.text() == text).trigger()
