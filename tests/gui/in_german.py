"""A plugin of pytest that shows the window in German: ``-p tests.gui.in_german``.

Tables of texts are translated when their modules are imported, and this is imported before those.
"""

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication

from ace_studio.gui.style.language import install_language

QLocale.setDefault(QLocale.c())
application = QApplication.instance() or QApplication(["ace-studio"])
install_language("Deutsch", application)
