; The Windows installer: for one user, without administrator rights. Built by packaging/installers/windows.py, which
; defines VERSION, SOURCE (the frozen program), OUT (the installer) and SIZE_KB.
Unicode true
SetCompressor /SOLID lzma
!include "MUI2.nsh"

!define NAME "ACE Studio"
!define PROGRAM "ace-studio.exe"
!define WINDOW "ace-studio-window.exe"
!define UNINSTALL_KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\ace-studio"
!define OPEN_WITH "Software\Classes\Applications\${WINDOW}"

Name "${NAME}"
OutFile "${OUT}"
RequestExecutionLevel user
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "${UNINSTALL_KEY}" "InstallLocation"
VIProductVersion "${VERSION}.0"
VIAddVersionKey "ProductName" "${NAME}"
VIAddVersionKey "ProductVersion" "${VERSION}"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "FileDescription" "Compress, compare and export PyTorch models"
VIAddVersionKey "LegalCopyright" "The ACE Studio authors, Apache License 2.0"

!insertmacro MUI_PAGE_LICENSE "${LICENSE}"
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!define MUI_FINISHPAGE_RUN "$INSTDIR\${WINDOW}"
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

; Files of the version before are removed, so that none of them is imported by this one. Engine packs beside the
; program, and history and settings of the user, are left.
!macro REMOVE_PROGRAM
  RMDir /r "$INSTDIR\program"
  RMDir /r "$INSTDIR\licences"
  Delete "$INSTDIR\contents.cdx.json"
  Delete "$INSTDIR\${PROGRAM}"
  Delete "$INSTDIR\${WINDOW}"
!macroend

Section "Install"
  !insertmacro REMOVE_PROGRAM
  SetOutPath "$INSTDIR"
  File /r "${SOURCE}/*"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\${WINDOW}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayName" "${NAME}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayIcon" "$INSTDIR\${WINDOW}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "Publisher" "The ACE Studio authors"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL_KEY}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" "EstimatedSize" ${SIZE_KB}
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" "NoRepair" 1
  ; "Open with" offers the program; it does not become the default of any type.
  WriteRegStr HKCU "${OPEN_WITH}" "FriendlyAppName" "${NAME}"
  WriteRegStr HKCU "${OPEN_WITH}\shell\open\command" "" '"$INSTDIR\${WINDOW}" "%1"'
  WriteRegStr HKCU "${OPEN_WITH}\SupportedTypes" ".pt" ""
  WriteRegStr HKCU "${OPEN_WITH}\SupportedTypes" ".pth" ""
  WriteRegStr HKCU "${OPEN_WITH}\SupportedTypes" ".pt2" ""
  WriteRegStr HKCU "${OPEN_WITH}\SupportedTypes" ".onnx" ""
  WriteRegStr HKCU "${OPEN_WITH}\SupportedTypes" ".safetensors" ""
  WriteRegStr HKCU "${OPEN_WITH}\SupportedTypes" ".toml" ""
SectionEnd

Section "Uninstall"
  !insertmacro REMOVE_PROGRAM
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\${NAME}.lnk"
  DeleteRegKey HKCU "${UNINSTALL_KEY}"
  DeleteRegKey HKCU "${OPEN_WITH}"
SectionEnd
