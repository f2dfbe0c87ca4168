{{/* The name of the cluster, and of the job. */}}
{{- define "dkl.name" -}}
{{- if gt (len .Release.Name) 40 }}{{ fail (printf "the release name %q is longer than 40 letters" .Release.Name) }}{{ end -}}
{{- .Release.Name -}}
{{- end -}}

{{- define "dkl.priorityClass" -}}
{{- .Values.disruption.priorityClass.name | default (printf "%s-scheduler" (include "dkl.name" .)) -}}
{{- end -}}

{{/* The operator gives these to every pod. */}}
{{- define "dkl.labels" -}}
app.kubernetes.io/name: dkl
app.kubernetes.io/instance: {{ include "dkl.name" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{/* The pods of this cluster. */}}
{{- define "dkl.own" -}}
dask.org/cluster-name: {{ include "dkl.name" . }}
{{- end -}}

{{- define "dkl.address" -}}
{{- printf "%s://%s-scheduler:8786" (ternary "tls" "tcp" .Values.tls.enabled) (include "dkl.name" .) -}}
{{- end -}}

{{/* What all pods have: (list $ role). */}}
{{- define "dkl.pod" -}}
{{- $ := index . 0 }}{{ $role := index . 1 -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 60
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $.Values.user }}
  runAsGroup: {{ $.Values.user }}
  fsGroup: {{ $.Values.user }}
  seccompProfile: {type: RuntimeDefault}
{{- with $.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
volumes:
  - name: scratch
    emptyDir: {sizeLimit: {{ ternary $.Values.storage.scratch 1 (eq $role "worker") }}Gi}
{{- if and $.Values.storage.claim (ne $role "scheduler") }}
  - name: data
    persistentVolumeClaim: {claimName: {{ $.Values.storage.claim }}}
{{- end }}
{{- if $.Values.tls.enabled }}
  - name: tls # only the key of this role
    secret:
      secretName: {{ $.Values.tls.secret }}
      defaultMode: 0440
      items:
        - {key: ca.pem, path: ca.pem}
        - {key: {{ $role }}.pem, path: {{ $role }}.pem}
        - {key: {{ $role }}.key, path: {{ $role }}.key}
{{- end }}
{{- end -}}

{{/* What all containers have: (list $ role cpus memory). */}}
{{- define "dkl.container" -}}
{{- $ := index . 0 }}{{ $role := index . 1 -}}
image: {{ $.Values.image.name }}
imagePullPolicy: {{ $.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources: # whole CPUs; requests equal limits, so that the pod is evicted last
  requests: {cpu: {{ index . 2 | quote }}, memory: {{ index . 3 }}Gi}
  limits: {cpu: {{ index . 2 | quote }}, memory: {{ index . 3 }}Gi}
volumeMounts:
  - {name: scratch, mountPath: /tmp}
{{- if and $.Values.storage.claim (ne $role "scheduler") }}
  - {name: data, mountPath: {{ $.Values.storage.mountPath }}}
{{- end }}
{{- if $.Values.tls.enabled }}
  - {name: tls, mountPath: /etc/dkl/tls, readOnly: true}
{{- end }}
{{- if and $.Values.storage.s3Secret (ne $role "scheduler") }}
envFrom:
  - secretRef: {name: {{ $.Values.storage.s3Secret }}}
{{- end }}
env:
  - {name: HOME, value: /tmp}
  - {name: OMP_NUM_THREADS, value: "1"} # the threads are dask's
  - {name: OPENBLAS_NUM_THREADS, value: "1"}
  - {name: MKL_NUM_THREADS, value: "1"}
  - {name: DASK_SCHEDULER_ADDRESS, value: "{{ include "dkl.address" $ }}"} # else the operator says tcp://
{{- if $.Values.tls.enabled }}
  - {name: DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION, value: "true"}
  - {name: DASK_DISTRIBUTED__COMM__TLS__CA_FILE, value: /etc/dkl/tls/ca.pem}
  - {name: DASK_DISTRIBUTED__COMM__TLS__{{ upper $role }}__CERT, value: /etc/dkl/tls/{{ $role }}.pem}
  - {name: DASK_DISTRIBUTED__COMM__TLS__{{ upper $role }}__KEY, value: /etc/dkl/tls/{{ $role }}.key}
{{- end }}
{{- range $name, $value := $.Values.environment }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}

{{- define "dkl.placement" -}}
{{- with .nodeSelector }}nodeSelector: {{- toYaml . | nindent 2 }}
{{ end }}
{{- with .tolerations }}tolerations: {{- toYaml . | nindent 2 }}
{{ end }}
{{- end -}}

{{/* Scheduler and workers, as DaskCluster and DaskJob want them. */}}
{{- define "dkl.cluster" -}}
{{- $pod := eq .Values.scheduler.dashboard "pod" -}}
worker:
  replicas: {{ .Values.workers.replicas }}
  spec:
    {{- include "dkl.pod" (list . "worker") | nindent 4 }}
    {{- with include "dkl.placement" .Values.workers | trim }}{{ . | nindent 4 }}{{ end }}
    containers:
      - name: worker
        # One worker for each pod, with every port pinned, so that a network policy can name them.
        args:
          - dask
          - worker
          - --name=$(DASK_WORKER_NAME)
          - --nworkers=1
          - --nthreads={{ .Values.workers.cpus }}
          - --memory-limit={{ mul .Values.workers.memory 870 }}MiB # 85 % of the pod's
          - --local-directory=/tmp
          - --worker-port=8790
          - --nanny-port=8791
          - --dashboard-address=127.0.0.1:8792
          - --death-timeout=300
          - --preload=dkl.engine.preload
        ports:
          - {name: tcp-worker, containerPort: 8790}
          - {name: tcp-nanny, containerPort: 8791}
        {{- include "dkl.container" (list . "worker" .Values.workers.cpus .Values.workers.memory) | nindent 8 }}
scheduler:
  spec:
    {{- include "dkl.pod" (list . "scheduler") | nindent 4 }}
    {{- if .Values.disruption.enabled }}
    priorityClassName: {{ include "dkl.priorityClass" . }}
    {{- end }}
    {{- with include "dkl.placement" .Values.scheduler | trim }}{{ . | nindent 4 }}{{ end }}
    containers:
      - name: scheduler
        args:
          - dask
          - scheduler
          - --protocol={{ ternary "tls" "tcp" .Values.tls.enabled }}
          - --port=8786
          - --dashboard-address={{ ternary "" "127.0.0.1" $pod }}:8787
          - --preload=dkl.engine.preload
        ports:
          - {name: tcp-comm, containerPort: 8786}
          - {name: http-dashboard, containerPort: 8787}
        # From inside the pod, as the dashboard may answer on loopback only.
        readinessProbe:
          exec: {command: [python, -m, dkl.engine.alive, "8787"]}
          initialDelaySeconds: 2
          periodSeconds: 10
          timeoutSeconds: 10
        livenessProbe:
          exec: {command: [python, -m, dkl.engine.alive, "8787"]}
          initialDelaySeconds: 30
          periodSeconds: 30
          timeoutSeconds: 20
          failureThreshold: 6
        {{- include "dkl.container" (list . "scheduler" .Values.scheduler.cpus .Values.scheduler.memory) | nindent 8 }}
        {{- if $pod }}
          # The operator asks this interface which workers to stop, and how many it should start.
          - name: DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES
            value: >-
              ['distributed.http.scheduler.prometheus', 'distributed.http.scheduler.info',
              'distributed.http.scheduler.json', 'distributed.http.health', 'distributed.http.proxy',
              'distributed.http.statics', 'distributed.http.scheduler.api']
        {{- end }}
  service:
    type: ClusterIP
    selector:
      {{- include "dkl.own" . | nindent 6 }}
      dask.org/component: scheduler
    ports:
      - {name: tcp-comm, protocol: TCP, port: 8786, targetPort: tcp-comm}
      - {name: http-dashboard, protocol: TCP, port: 8787, targetPort: http-dashboard}
{{- end -}}
