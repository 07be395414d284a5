"""A headless Chromium that records what the page must not do: errors, violations of its policy, requests to elsewhere.

Scripts may use `$` of the page, `all` for all elements of a selector, and `said` for what screen readers announce.
"""

import functools
import importlib.util
import json
import pathlib
import shutil
import time

CHROMIUM, DRIVER = (shutil.which(name, path="/usr/bin") for name in ("chromium", "chromedriver"))
RECORDER = """
reports = [];
addEventListener('securitypolicyviolation', event => reports.push(event.violatedDirective + ' ' + event.blockedURI));
addEventListener('error', event => reports.push(event.message));
addEventListener('unhandledrejection', event => reports.push('rejected: ' + event.reason));
said = [];
all = selector => [...document.querySelectorAll(selector)];
addEventListener('DOMContentLoaded', () => {
  const status = document.getElementById('status');
  if (!status) return;
  const observer = new MutationObserver(() => status.textContent && said.push(status.textContent));
  observer.observe(status, {childList: true});
});
"""


def missing():
    """The packages that the tests lack, or an empty string."""
    lacking = [name for name in ("selenium", "axe_core_python") if importlib.util.find_spec(name) is None]
    lacking += [name for name, found in (("chromium", CHROMIUM), ("chromium-driver", DRIVER)) if not found]
    return "not installed: " + ", ".join(lacking) if lacking else ""


@functools.cache
def axe():
    """The script of axe-core."""
    package = pathlib.Path(importlib.util.find_spec("axe_core_python").origin).parent
    return next(package.rglob("axe.min.js")).read_text(encoding="utf-8")


class Browser:
    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.driver.set_script_timeout(300)
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": RECORDER})
        self.url = None

    def open(self, url):
        self.url = url.partition("#")[0]
        self.show_as()
        self.driver.get("about:blank")
        self.driver.get_log("browser"), self.driver.get_log("performance")
        self.driver.get(url)
        self.wait("!$('pages').hidden || $('page-note').textContent || $('ask').open")

    def show_as(self, scheme="light", width=1280, motion="reduce"):
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": name, "value": value} for name, value in features.items()]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False})

    def script(self, script, *arguments):
        """The value of an expression, or of statements with a return."""
        return self.driver.execute_script(script if "return" in script else "return " + script, *arguments)

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not (value := self.script(condition)):
            assert time.monotonic() < end, f"not reached: {condition}"
            time.sleep(0.02)
        return value

    def text(self, name):
        return self.script("document.getElementById(arguments[0]).textContent", name)

    def texts(self, selector):
        return self.script("[...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)

    def keys(self, *keys):
        """Presses keys, by their names in Selenium or their letters, or enters text, wherever the focus is.

        Text is one event: pages that wait for a pause in typing never see a part of it, however slow the machine is.
        """
        from selenium.webdriver import ActionChains, Keys

        for key in keys:
            named = key.isupper() and getattr(Keys, key, None)
            if named or len(key) == 1:
                ActionChains(self.driver, duration=0).send_keys(named or key).perform()
            else:
                self.driver.execute_cdp_cmd("Input.insertText", {"text": key})

    def point_at(self, selector):
        from selenium.webdriver import ActionChains

        element = self.driver.find_element("css selector", selector)
        ActionChains(self.driver, duration=0).move_to_element(element).perform()

    def focused(self):
        """The id of the focused element; if it has none, its class or its text."""
        return self.script("(e => e.id || e.className || e.textContent)(document.activeElement)")

    def tab_to(self, name, key="TAB", limit=60):
        """Presses Tab until the focus is on an element of this id or class."""
        for _ in range(limit):
            self.keys(key)
            if name in self.focused().split():
                return
        raise AssertionError(f"{name} was not reached by {key}")

    def findings(self):
        """The findings of axe-core: pairs of a rule and the element that breaks it."""
        self.driver.execute_script(axe())
        found = self.driver.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
        assert found["passes"]
        return [(rule["id"], node["html"][:200]) for rule in found["violations"] for node in rule["nodes"]]

    def complaints(self, statuses=()):
        """Everything that went wrong since the page was opened.

        Chromium reports every refusal and every answer that was cut: those with these statuses and the cut ones, which
        only tests make, are expected.
        """
        found = list(self.script("reports"))
        for entry in self.driver.get_log("browser"):
            endings = [f"status of {status} " for status in statuses] + ["net::ERR_INCOMPLETE_CHUNKED_ENCODING"]
            expected = entry["source"] == "network" and any(ending in entry["message"] for ending in endings)
            if entry["level"] == "SEVERE" and not expected:
                found.append(entry["message"])
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(self.url) and url != "about:blank":
                    found.append(f"request to {url}")
        return found

    def quit(self):
        self.driver.quit()
