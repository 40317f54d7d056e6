"""Turns a profile of the document into one that can run, by upstream's rules for plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from pydantic import ValidationError

from .corrections import Correction
from .evictor import DefaultEvictorArguments, clash_in
from .findings import Finding, close_match, selector_findings, validation_findings
from .loaded import LoadedPlugin, LoadedProfile, PluginSpec

if TYPE_CHECKING:
    from .args import Arguments
    from .corrections import Corrections
    from .findings import Findings, Path
    from .policy import PluginConfig, PluginSet, Profile

EVICTOR = "DefaultEvictor"
STRATEGY_POINTS = frozenset({"deschedule", "balance"})
EVICTOR_SPEC = PluginSpec(
    EVICTOR, frozenset({"filter", "preevictionfilter"}), DefaultEvictorArguments
)


class ProfileReader:
    """Reads profiles, given the plugins there are."""

    def __init__(
        self, plugins: Mapping[str, PluginSpec], corrections: Corrections, findings: Findings
    ) -> None:
        """Know the plugins; what is found goes to `findings`."""
        self._plugins = {**plugins, EVICTOR: EVICTOR_SPEC}
        self._corrections = corrections
        self._findings = findings

    def read(self, profile: Profile, path: Path) -> LoadedProfile:
        """Return the profile; it is of use only if nothing was refused."""
        configured: dict[str, Arguments | None] = {}
        for index, entry in enumerate(profile.plugin_config):
            arguments = self._configured(entry, (*path, "pluginConfig", index))
            configured.setdefault(entry.name, arguments)  # upstream uses the first
        plugins, at = profile.plugins, (*path, "plugins")
        self._without_effect(profile, at)
        self._check_filters(profile, at)
        return LoadedProfile(
            name=profile.name,
            # It need not be enabled: upstream puts it first wherever it is missing.
            evictor=cast(
                DefaultEvictorArguments, configured.get(EVICTOR) or DefaultEvictorArguments()
            ),
            deschedule=self._enabled(plugins.deschedule, (*at, "deschedule"), configured),
            balance=self._enabled(plugins.balance, (*at, "balance"), configured),
        )

    def _configured(self, entry: PluginConfig, path: Path) -> Arguments | None:
        spec = self._plugins.get(entry.name)
        if spec is None:
            self._findings.refuse([self._unknown(entry.name, (*path, "name"))])
            return None
        # Both belong to an object of the API and mean nothing here.
        document = {k: v for k, v in entry.args.items() if k not in ("apiVersion", "kind")}
        try:
            arguments = spec.arguments.read(document)
        except ValidationError as error:
            at = (*path, "args")
            self._findings.refuse(validation_findings(error, spec.arguments, document, at))
            if spec is EVICTOR_SPEC and (clash := clash_in(document)):
                self._findings.refuse([Finding(at, clash)])
            return None
        if isinstance(arguments, DefaultEvictorArguments):
            self._doubtful(arguments, (*path, "args"))
        return arguments

    def _doubtful(self, arguments: DefaultEvictorArguments, path: Path) -> None:
        if arguments.min_replicas == 1:
            message = "1 protects nothing; it acts from 2 on"
            self._findings.warn([Finding((*path, "minReplicas"), message)])
        # Upstream reads it at each use, and then takes no Pod at all.
        self._findings.refuse_if_strict(
            selector_findings(arguments.node_selector, (*path, "nodeSelector"))
        )

    def _enabled(
        self, plugins: PluginSet, path: Path, configured: dict[str, Arguments | None]
    ) -> tuple[LoadedPlugin, ...]:
        loaded = []
        for index, name in enumerate(plugins.enabled):
            here = (*path, "enabled", index)
            if (wrong := self._misplaced(name, str(path[-1]), here)) is not None:
                self._findings.refuse([wrong])
                continue
            if name not in configured:
                configured[name] = self._unconfigured(self._plugins[name], here)
            if (arguments := configured[name]) is not None:
                loaded.append(LoadedPlugin(name, arguments))
        return tuple(loaded)

    def _unconfigured(self, spec: PluginSpec, path: Path) -> Arguments | None:
        hint = f"add `- name: {spec.name}` with its args to pluginConfig"
        if Correction.MISSING_PLUGIN_CONFIG not in self._corrections:
            message = f"{spec.name} is enabled, but has no entry in pluginConfig"
            self._findings.refuse([Finding(path, message, hint)])
            return None
        model = spec.arguments
        try:
            return model.read({})
        except ValidationError as error:
            needs = [
                ": ".join(filter(None, (".".join(map(str, found.path)), found.message)))
                for found in validation_findings(error, model, {})
            ]
            message = f"{spec.name} cannot run without arguments: {'; '.join(needs)}"
            self._findings.refuse([Finding(path, message, hint)])
            return None

    def _check_filters(self, profile: Profile, at: Path) -> None:
        plugins = profile.plugins
        for point, enabled in (
            ("filter", plugins.filter),
            ("preevictionfilter", plugins.preevictionfilter),
        ):
            self._findings.refuse(self._all_misplaced(enabled, point, (*at, point)))
        # Upstream does not know this spelling and looks at nothing under it.
        self._findings.refuse_if_strict(
            self._all_misplaced(
                plugins.pre_eviction_filter, "preevictionfilter", (*at, "preEvictionFilter")
            )
        )

    def _all_misplaced(self, plugins: PluginSet, point: str, path: Path) -> Iterator[Finding]:
        for index, name in enumerate(plugins.enabled):
            if (wrong := self._misplaced(name, point, (*path, "enabled", index))) is not None:
                yield wrong

    def _misplaced(self, name: str, point: str, path: Path) -> Finding | None:
        spec = self._plugins.get(name)
        if spec is None:
            return self._unknown(name, path)
        if point not in spec.extension_points:
            points = " or ".join(sorted(spec.extension_points))
            return Finding(path, f"{name} is no {point} plugin", f"list it under {points}")
        return None

    def _unknown(self, name: str, path: Path) -> Finding:
        return Finding(path, f"unknown plugin {name!r}", close_match(name, self._plugins))

    def _without_effect(self, profile: Profile, at: Path) -> None:
        for point in ("presort", "sort"):
            plugins: PluginSet = getattr(profile.plugins, point)
            for index, name in enumerate(plugins.enabled):
                message = f"{name} has no effect here: no plugin is a {point} plugin"
                finding = Finding((*at, point, "enabled", index), message, "remove it")
                self._findings.refuse_if_strict([finding])
        for point, field in type(profile.plugins).model_fields.items():
            if getattr(profile.plugins, point).disabled:
                message = "has no effect, as with upstream"
                hint = "leave the plugin out of enabled instead"
                self._findings.warn(
                    [Finding((*at, field.alias or point, "disabled"), message, hint)]
                )
