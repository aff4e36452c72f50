"""Antivirus products, what they removed, and Windows Defender's state. Nothing here needs special rights."""

import base64
import json
import os
import re
import sys
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import places
from .child import decode, run
from .registry import Absent, collector

# Folders below Program Files of products that are common on students' machines and do not always register
# themselves.
PRODUCTS = {
    "360 Total Security / 360 Safe": ("360/360Safe", "360/Total Security"),
    "360 Antivirus": ("360/360sd",),
    "Tencent PC Manager": ("Tencent/QQPCMgr",),
    "Huorong": ("Huorong/Sysdiag",),
    "Kingsoft Antivirus": ("kingsoft/kingsoft antivirus", "Kingsoft/KSafe"),
    "Rising": ("Rising/RAV", "Rising/RSD"),
    "Kaspersky": ("Kaspersky Lab",),
    "ESET": ("ESET/ESET Security", "ESET/ESET NOD32 Antivirus"),
    "Avast": ("Avast Software/Avast", "AVAST Software/Avast"),
    "AVG": ("AVG/Antivirus",),
    "Avira": ("Avira/Antivirus",),
    "McAfee": ("McAfee", "McAfee Security Scan"),
    "Norton": ("Norton Security", "Norton AntiVirus"),
    "Symantec Endpoint Protection": ("Symantec/Symantec Endpoint Protection",),
    "Bitdefender": ("Bitdefender/Bitdefender Security", "Bitdefender Antivirus Free"),
    "Trend Micro": ("Trend Micro",),
    "Malwarebytes": ("Malwarebytes/Anti-Malware",),
    "Sophos": ("Sophos/Sophos Anti-Virus",),
    "Panda": ("Panda Security",),
    "F-Secure": ("F-Secure",),
    "V3": ("AhnLab/V3Lite40", "AhnLab/V3IS90"),
}
# Only detections that can concern us are kept: a person's other files are none of our business.
CONCERNS = re.compile(r"python|tensorflow|site-packages|conda|cuda|cudnn|nvidia|jupyter|\.pyd|\.whl|\bpip\b", re.I)
ACTIONS = {1: "clean", 2: "quarantine", 3: "remove", 6: "allow", 8: "user defined", 9: "none", 10: "block"}
STATES = {0: "off", 1: "on", 2: "snoozed", 3: "expired"}
# ConvertTo-Json of Windows PowerShell 5 has no -AsArray: @() and a wrapping object keep lists lists.
SCRIPT = r"""
$ErrorActionPreference = 'SilentlyContinue'; $ProgressPreference = 'SilentlyContinue'
[Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false
$names = @{}; Get-MpThreat | ForEach-Object { $names["$($_.ThreatID)"] = $_.ThreatName }
$status = Get-MpComputerStatus; $preference = Get-MpPreference
$recent = Get-MpThreatDetection | Sort-Object InitialDetectionTime -Descending | Select-Object -First 200
$found = @($recent | Where-Object { $_ } | ForEach-Object {
  @{ resources = @($_.Resources); threat = $names["$($_.ThreatID)"]; action = $_.CleaningActionID
     time = $_.InitialDetectionTime.ToString('s') } })
$registered = Get-CimInstance -Namespace root/SecurityCenter2 -ClassName AntiVirusProduct
$products = @($registered | Where-Object { $_ } | ForEach-Object {
  @{ name = $_.displayName; state = $_.productState } })
$state = $null
if ($status) {
  $state = @{ enabled = $status.AntivirusEnabled; mode = "$($status.AMRunningMode)"
              realtime = $status.RealTimeProtectionEnabled } }
@{ answered = $true; status = $state; exclusions = @($preference.ExclusionPath)
   detections = $found; products = $products } | ConvertTo-Json -Depth 5 -Compress
"""


def parse(text: str) -> Optional[Dict[str, Any]]:
    """The script's answer as the fact's value; None when PowerShell said nothing that can be read.

    Sample: ``{"answered": true, "detections": [{"resources":
    ["file:_C:\\\\...\\\\_pywrap_tensorflow_internal.pyd"], "threat": "Trojan:Win32/Wacatac.B!ml", "action":
    2, "time": "2021-03-04T10:11:12"}], "products": [...], ...}``.
    """
    try:
        said = json.loads(text[text.index("{") :])
    except ValueError:
        return None
    if not isinstance(said, dict) or not said.get("answered"):
        return None
    detections = []
    for entry in _list(said.get("detections")):
        for resource in _list(entry.get("resources")):
            path = re.sub(r"^[a-z]+:_?", "", str(resource), count=1)
            if CONCERNS.search(path):
                detections.append(
                    {
                        "path": path,
                        "threat": entry.get("threat"),
                        "time": entry.get("time"),
                        "action": ACTIONS.get(entry.get("action"), str(entry.get("action"))),
                    }
                )
    products = [
        {"name": str(entry.get("name")), "state": product_state(entry.get("state"))}
        for entry in _list(said.get("products"))
        if isinstance(entry, dict)
    ]
    status = said.get("status")
    shown = defender(status, _list(said.get("exclusions")))
    return {
        "products": products,
        "detections": detections,
        "defender": shown,
        # What only an administrator could see; nothing is done to get those rights.
        "administrator": ["exclusions"] if shown is not None and shown["exclusions"] is None else [],
    }


def _list(value: Any) -> List[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def defender(status: Any, exclusions: List[Any]) -> Optional[Dict[str, Any]]:
    """Defender's own state; exclusions are null when only an administrator may see them.

    Sample of a refused list: ``N/A: Must be an administrator to view exclusions``.
    """
    if not isinstance(status, dict):
        return None
    listed = [str(entry) for entry in exclusions if entry]
    hidden = any(entry.startswith("N/A:") for entry in listed)
    return {
        "enabled": status.get("enabled"),
        "mode": status.get("mode") or None,
        "realtime": status.get("realtime"),
        "exclusions": None if hidden else listed,
    }


def product_state(number: Any) -> Optional[str]:
    """The word for Security Center's ``productState``: 397568 (0x61100) is on, 393472 (0x60100) off."""
    return STATES.get(number >> 12 & 0xF) if isinstance(number, int) else None


def installed_products(folders: List[str]) -> List[Dict[str, Any]]:
    """Well-known products by their folders below the given ``Program Files`` folders."""
    return [
        {"name": name, "state": "installed"}
        for name, below in PRODUCTS.items()
        if any(os.path.isdir(os.path.join(folder, *part.split("/"))) for folder in folders for part in below)
    ]


def program_folders(environment: Mapping[str, str]) -> List[str]:
    """The ``Program Files`` folders of the system and of every fixed drive."""
    found = [environment.get(name, "") for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432")]
    for drive in places.drives():
        found += [os.path.join(drive, "Program Files"), os.path.join(drive, "Program Files (x86)")]
    return places.unique(found)


def powershell(environment: Mapping[str, str]) -> str:
    """Windows PowerShell by its fixed place: PATH may be what is broken."""
    fixed = os.path.join(places.windows_folders(environment)["system32"], "WindowsPowerShell", "v1.0", "powershell.exe")
    return fixed if os.path.isfile(fixed) else "powershell.exe"


@collector("security.antivirus", 45)
def antivirus(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Products, Defender's state and its detections that concern Python, TensorFlow or CUDA."""
    if sys.platform != "win32":
        raise Absent("windows-only")
    encoded = base64.b64encode(SCRIPT.encode("utf-16-le")).decode("ascii")
    command = [
        powershell(os.environ),
        "-NoProfile",
        "-NonInteractive",
        "-ExecutionPolicy",
        "Bypass",
        "-EncodedCommand",
        encoded,
    ]
    try:
        said = parse(decode(run(command, 35).out))
    except OSError:
        said = None
    products = installed_products(program_folders(os.environ))
    if said is None:
        if not products:
            raise Absent("PowerShell gave no answer, and no well-known product's folder is there")
        return {"products": products, "detections": [], "defender": None, "administrator": ["defender"]}, "folders"
    known = " ".join(entry["name"].lower() for entry in said["products"])
    said["products"] += [entry for entry in products if entry["name"].split()[0].lower() not in known]
    return said, "Get-MpThreatDetection, Get-MpComputerStatus, SecurityCenter2, folders"
