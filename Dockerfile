# Two stages: what builds stays behind. The steps stand in scripts/image-steps, which a test runs.
ARG PYTHON=python:3.11-slim

FROM ${PYTHON} AS build
WORKDIR /src
COPY scripts/image-steps scripts/
COPY requirements.lock ./
RUN scripts/image-steps wheels /wheels
COPY pyproject.toml README.md LICENSE ./
COPY reactive_descheduler reactive_descheduler
RUN scripts/image-steps program /wheels /opt/reactive-descheduler

FROM ${PYTHON}
COPY --from=build /opt/reactive-descheduler /opt/reactive-descheduler
# By number, so that a kubelet can tell that it is not root. It has no home, and writes nothing.
ENV HOME=/ PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 10258
ENTRYPOINT ["/opt/reactive-descheduler/bin/reactive-descheduler"]
