// Generated from the JSON Schemas by .ci/schema-types.ts: the shape of a value after validation, defaults filled in.
/**
 * sallyport.yaml: which servers there are, what each gets, and which calls are allowed.
 */
export interface Config {
  /**
   * Address of this schema, for editors
   */
  $schema: string
  /**
   * Version of the format
   */
  version: 1
  /**
   * In the enterprise file: load no other file
   */
  exclusive: boolean
  /**
   * Programs that servers may run: authoritative, there are no hidden ones
   *
   * Items: A bare name that is looked up in `command_path`, or a name with the path of its file
   */
  allowed_commands: (
    | string
    | {
        /**
         * Name that a server’s `command` uses
         */
        name: string
        /**
         * File that the name means, from the folder of this file where relative; null is looked up in `command_path`
         */
        path: string | null
        /**
         * What the file is, where neither its name nor its content tells: node, bun, deno, python, ruby, perl, php, lua, tcl, shell, java, dotnet or other; `none` overrules both
         */
        interpreter: string | null
      }
  )[]
  /**
   * Folders where bare names are found; never the caller’s PATH
   *
   * @minItems 1
   *
   * Items: An absolute path, normal in form
   */
  command_path: string[]
  /**
   * Interpreter -> options that servers may give it before the script
   */
  interpreter_options: {
    /**
     * Options, exactly as written
     *
     * Items: An option
     */
    [k: string]: string[]
  }
  /**
   * Servers that one host (one uid) may launch beyond the configured ones
   */
  max_dynamic_servers: number
  /**
   * How eager servers start
   */
  startup: {
    /**
     * Starts at once; SALLYPORT_STARTUP_CONCURRENCY overrides
     */
    concurrency: number
  }
  /**
   * Sandboxes that wait for calls of servers with `instance: call`
   */
  pool: {
    /**
     * Memory of all that wait, bytes; the server used longest ago gives way
     */
    memory_bytes: number
  }
  /**
   * Servers that hosts launch
   */
  dynamic: {
    /**
     * Whether hosts may launch servers
     */
    enabled: boolean
    /**
     * Servers that all hosts together may launch, each no more than `max_dynamic_servers`
     */
    in_all: number
    /**
     * Their profile
     */
    profile: string
    /**
     * Their trust
     */
    trust: 'trusted' | 'untrusted' | 'sandboxed'
    /**
     * Who accepts their tools
     */
    acceptance: 'manual' | 'first-use'
    /**
     * Which of their tools are exposed
     */
    tools: {
      /**
       * Tools that are exposed
       *
       * Items: Name of a tool; `*` stands for any letters, `?` for one
       */
      allow: string[]
    }
  }
  /**
   * Refuse to start where a host shares a uid with the daemon or a sandbox
   */
  require_separation: boolean
  /**
   * Group whose members may use host.sock; null is the owner alone
   */
  host_group: string | null
  /**
   * Deployment mode; servers with `tags` run only in modes that they name
   */
  mode: string
  /**
   * What confines the servers whose entries do not say
   */
  driver: 'bubblewrap' | 'docker'
  /**
   * Name -> where the secret comes from
   */
  credentials: {
    /**
     * Where a secret comes from: exactly one of the three
     */
    [k: string]: {
      /**
       * Variable of the daemon that holds it
       */
      env?: string
      /**
       * File that holds it
       */
      file?: string
      /**
       * Program (absolute path) and arguments that print it
       *
       * @minItems 1
       *
       * Items: An argument
       */
      command?: string[]
    }
  }
  /**
   * Name -> server; `sallyport` is reserved for what Sallyport lists itself
   */
  servers: {
    /**
     * A stdio MCP server and what it gets
     */
    [k: string]: {
      /**
       * A name in `allowed_commands`, never a path
       */
      command: string
      /**
       * Its arguments, as the sandbox sees them
       *
       * Items: An argument
       */
      args: string[]
      /**
       * The server’s code: digested, read-only, outside every writable mount
       */
      package: {
        /**
         * Folder of the code on the host
         */
        source: string
        /**
         * Where the sandbox has it
         */
        target: string
        /**
         * Further folders that the code resolves from, such as node_modules; each appears beside the target under its own name: /app has /node_modules, where Node looks for it
         *
         * Items: A path; where it is relative, from the folder of the file
         */
        with: string[]
        /**
         * Digest that the tree must have; null pins what is found at registration
         */
        digest: string | null
      } | null
      /**
       * Image of the docker driver, by digest
       */
      image: string | null
      /**
       * OCI runtime of the docker driver
       */
      runtime: string | null
      /**
       * Version of the server, part of every tool’s identity
       */
      version: string
      /**
       * Whether it may run at all
       */
      enabled: boolean
      /**
       * Deployment modes in which it runs; empty means every mode
       *
       * Items: A name: it delimits identities, so its letters are few
       */
      tags: string[]
      /**
       * Why the operator registered it
       */
      justification: string
      /**
       * Name of its profile, the ceiling of everything below
       */
      profile: string
      /**
       * What confines it; null is the `driver` of the whole configuration
       */
      driver: 'bubblewrap' | 'docker' | null
      /**
       * Host folders that it sees
       *
       * Items: A host folder or file that the server sees
       */
      mounts: {
        /**
         * Host path, from the folder of this file where relative
         */
        source: string
        /**
         * Path in the sandbox
         */
        target: string
        /**
         * What the server may do with it; `write` is a way out later, since others may run what it writes
         */
        access: 'read' | 'write'
        /**
         * Why the server has it
         */
        reason: string
      }[]
      /**
       * Its variables beyond the base and those of the profile
       */
      env: {
        /**
         * A value, or one with a default for unset variables, or one of a refused family with the reason for letting it through. `${env:NAME}` stands for the daemon’s variable NAME, `$${` for a plain `${`
         */
        [k: string]:
          | string
          | {
              /**
               * The value, in which `${env:NAME}` stands for the daemon’s variable NAME
               */
              value: string
              /**
               * Value where a variable that it names is unset; null makes that an error
               */
              default: string | null
              /**
               * Why the name is let through although it is of a family that loads code or carries secrets; recorded
               */
              override: string | null
            }
      }
      /**
       * Its working directory in the sandbox; null is the first mount or the private home
       */
      cwd: string | null
      /**
       * Credentials that its calls may use
       *
       * Items: A credential that the server’s calls may use
       */
      credentials: {
        /**
         * Name in the top-level `credentials`
         */
        use: string
        /**
         * How it reaches the server or its requests
         */
        inject: 'egress' | 'meta' | 'file' | 'env'
        /**
         * Variable of the server that holds the placeholder (`egress`), the value (`env`) or the path of the file (`file`); for `meta` the member of `_meta["sallyport/credentials"]`
         */
        as: string
        /**
         * `host:port` where the placeholder is swapped, for `egress`; each is among the server’s `egress`, and none is a pattern
         *
         * Items: A host and port
         */
        hosts: string[]
        /**
         * Header of a request in which the placeholder is swapped, for `egress`; in `authorization` also within Basic
         */
        header: string
        /**
         * Whether the placeholder is swapped in the query of a request’s address too, for `egress`; addresses are logged by servers and proxies
         */
        query: boolean
        /**
         * Whether the placeholder is swapped in the body of a request too, for `egress`
         */
        body: boolean
        /**
         * Whether a request may turn its connection into a websocket, for `egress`; nothing is swapped behind the handshake
         */
        websocket: boolean
        /**
         * File of certificates (PEM) that the hosts are verified against instead of the system’s roots, for `egress`; null takes the system’s
         */
        ca_file: string | null
        /**
         * Form of the placeholder, for `egress`
         */
        placeholder: {
          /**
           * Letters that it begins with
           */
          prefix: string
          /**
           * Length in letters, prefix included
           */
          length: number
        }
      }[]
      /**
       * Hosts that it may connect to
       *
       * Items: A host and port that the server may connect to
       */
      egress: {
        /**
         * Exact name, or `*.name`
         */
        host: string
        /**
         * Exact port
         */
        port: number
        /**
         * Address that the host has, instead of what a resolver says: for an exact name; judged as a resolved one is. A server’s entry has the one of its profile’s entry, or both have none
         */
        address: string | null
        /**
         * Whether private, loopback and link-local addresses are allowed for the name
         */
        private: boolean
        /**
         * Whether a connection must begin with a TLS ClientHello that names the host; `auto` means true on ports where TLS is usual (443, 8443, 465, 993 …) and false elsewhere
         */
        tls: true | false | 'auto'
        /**
         * Why the server needs it
         */
        reason: string
      }[]
      /**
       * Whether the doors stand open always or only while a call is in flight
       */
      egress_when: 'always' | 'calling'
      /**
       * How far the operator trusts it: `trusted` follows the rules, `untrusted` asks until trust has grown, `sandboxed` exposes only `tools.allow` and never elicits
       */
      trust: 'trusted' | 'untrusted' | 'sandboxed'
      /**
       * Whether its tools stay what they were declared to be
       */
      surface: 'static' | 'dynamic'
      /**
       * Who accepts its tools
       */
      acceptance: 'manual' | 'first-use'
      /**
       * File that declares its tools
       */
      declaration: string | null
      /**
       * Which of its tools are exposed
       */
      tools: {
        /**
         * Tools that are exposed; empty means all, except under `trust: sandboxed`, where it means none
         *
         * Items: Name of a tool; `*` stands for any letters, `?` for one
         */
        allow: string[]
        /**
         * Tools that are never exposed
         *
         * Items: Name of a tool; `*` stands for any letters, `?` for one
         */
        deny: string[]
        /**
         * Tools that the operator vouches only read; lists show them so where their own annotations say nothing of it
         *
         * Items: Name of a tool; `*` stands for any letters, `?` for one
         */
        read_only: string[]
      }
      /**
       * How many processes there are: one for each session, one for each call, or one that all sessions and control calls of a principal share, for a server of 2026-07-28; `shared` takes no credentials in files or variables
       */
      instance: 'session' | 'call' | 'shared'
      /**
       * Calls of tools that one process works on at once, or with `instance: call` (64 at most) that a principal has there at once; the next wait for their turn, `timeouts.call_ms` at most. null is 256, with `instance: shared` for each session, and 8 with `instance: call`
       */
      max_concurrent: number | null
      /**
       * With `instance: call`: sandboxes that are built ahead and wait, empty, for one call each
       */
      pool: {
        /**
         * How many wait while the server is in use; 0 builds each when its call is there
         */
        size: number
        /**
         * Longest that one waits before another takes its place, ms
         */
        age_ms: number
      }
      /**
       * When it starts
       */
      start: 'lazy' | 'eager'
      /**
       * Whether the server may ask the person
       */
      elicitation: {
        /**
         * Whether it may ask at all
         */
        enabled: boolean
        /**
         * How long an answer may take, ms
         */
        timeout_ms: number
        /**
         * Questions that may wait at once
         */
        queue: number
      }
      /**
       * Whether the server may ask the host’s model
       */
      sampling: boolean
      /**
       * What it is told of the host’s roots: the targets of its mounts, or nothing
       */
      roots: 'mounts' | 'none'
      /**
       * Bounds on what it writes
       */
      output: {
        /**
         * Largest result that a caller gets whole, bytes
         */
        result_bytes: number
        /**
         * Longest line on stdout, bytes
         */
        line_bytes: number
        /**
         * Stderr that is kept, bytes
         */
        stderr_bytes: number
      }
      /**
       * Bounds on waiting
       */
      timeouts: {
        /**
         * Handshake, ms
         */
        initialize_ms: number
        /**
         * Call, ms
         */
        call_ms: number
        /**
         * Life without a call or session, ms; 0 is for ever
         */
        idle_ms: number
      }
      /**
       * The stop ladder
       */
      stop: {
        /**
         * Time between the end of stdin and SIGTERM, ms
         */
        eof_ms: number
        /**
         * Time between SIGTERM and SIGKILL, ms
         */
        term_ms: number
      }
      /**
       * What happens after it ended by itself
       */
      restart: {
        /**
         * Waits between attempts, s; the last one repeats, and is 0.1 s at least then
         *
         * @minItems 1
         * @maxItems 32
         *
         * Items: A wait, s
         */
        schedule_s: number[]
        /**
         * Part of a wait that is random, 0.2 is a fifth
         */
        jitter: number
        /**
         * Life after which the schedule begins anew, s
         */
        steady_s: number
        /**
         * Attempts for a server that never became ready
         */
        start_attempts: number
        /**
         * Ends within the steady time that quarantine it
         */
        storm: number
      }
      /**
       * Host uid to run as where the daemon is root, with the group of its account; null gives each sandbox one of its own
       */
      run_as: number | null
    }
  }
  /**
   * Decisions on calls: any matching deny wins, else the first match, else ask
   *
   * Items: Which calls are allowed, asked for or denied
   */
  rules: {
    /**
     * `mcp:<server>:<tool>` or `mcp:<server>:<method>`, `*` stands for any letters, `?` for one
     */
    permission: string
    /**
     * What a match decides; any matching deny wins, else the first match
     */
    action: 'allow' | 'ask' | 'deny'
    /**
     * JSON pointer into the arguments, in which `*` is every element of a list -> glob; all must match
     */
    where: {
      /**
       * A glob that the string at the pointer must match
       */
      [k: string]: string
    }
  }[]
  /**
   * Asking a person
   */
  approval: {
    /**
     * How long a call waits for an answer, ms
     */
    wait_ms: number
    /**
     * How long an approval holds, ms
     */
    ttl_ms: number
  }
  /**
   * What carries a decision to the boundary
   */
  permit: {
    /**
     * Life, ms; a call with a process of its own has `timeouts.initialize_ms` beside it
     */
    ttl_ms: number
  }
  /**
   * How trust in a tool grows
   */
  trust: {
    /**
     * Good calls until provisional
     */
    provisional_after: number
    /**
     * Good calls until trusted
     */
    trusted_after: number
    /**
     * What a violation resets: its tools, or every tool of the server, each once for what happened at once
     */
    contaminate: 'tool' | 'server'
  }
  /**
   * How tools are shown
   */
  tools: {
    /**
     * Form of displayed names
     */
    naming: '<server>_<tool>' | 'mcp__<server>__<tool>' | '<server>:<tool>'
    /**
     * Tools above which the list shows the search tool
     */
    search_threshold: number
    /**
     * Most matches of a search
     */
    search_matches: number
    /**
     * Letters of a description in lists
     */
    description_list: number
    /**
     * Letters of a description in full
     */
    description_full: number
    /**
     * Tools of one server
     */
    per_server: number
  }
  /**
   * The record of everything
   */
  journal: {
    /**
     * What a record survives: the daemon (`write`) or a loss of power (`fsync`)
     */
    durability: 'write' | 'fsync'
    /**
     * Size of a segment, bytes
     */
    segment_bytes: number
    /**
     * Largest request or response kept whole, bytes
     */
    evidence_bytes: number
    /**
     * Days that segments are kept; 0 is for ever
     */
    keep_days: number
  }
}

/**
 * .sallyport.yaml: what a project takes away from the servers that the operator configured; it can grant nothing.
 */
export interface Project {
  /**
   * Address of this schema, for editors
   */
  $schema: string
  /**
   * Version of the format
   */
  version: 1
  /**
   * Name of a configured server -> what this project takes away from it
   */
  servers: {
    /**
     * What the project takes away
     */
    [k: string]: {
      /**
       * `false` switches the server off; null leaves it as it is
       */
      enabled: false | null
      /**
       * Tools of it
       */
      tools: {
        /**
         * Tools that are not exposed here
         *
         * Items: Name of a tool; `*` stands for any letters, `?` for one
         */
        deny: string[]
      }
    }
  }
  /**
   * Denials, and calls to ask for
   *
   * Items: Which calls are allowed, asked for or denied
   */
  rules: {
    /**
     * `mcp:<server>:<tool>` or `mcp:<server>:<method>`, `*` stands for any letters, `?` for one
     */
    permission: string
    /**
     * What a match decides
     */
    action: 'ask' | 'deny'
    /**
     * JSON pointer into the arguments, in which `*` is every element of a list -> glob; all must match
     */
    where: {
      /**
       * A glob that the string at the pointer must match
       */
      [k: string]: string
    }
  }[]
}

/**
 * A profile: the ceiling of what a server may have, each grant with its reason. A key that a profile leaves out is that of the profile it extends.
 */
export interface Profile {
  /**
   * Address of this schema, for editors
   */
  $schema: string
  /**
   * Version of the format
   */
  version: 1
  /**
   * Its name, the same as the file’s
   */
  name: string
  /**
   * What it is for, in a sentence or two
   */
  description: string
  /**
   * Profile that it narrows; null stands alone
   */
  extends: string | null
  /**
   * Says that it grants more than the profile it extends
   */
  widens: boolean
  /**
   * Says that nobody has read it yet: `profile learn` writes it, `profile lint` tells of it, a person takes it away
   */
  draft: boolean
  /**
   * What of the host’s files the sandbox has
   */
  filesystem: {
    /**
     * Host paths that are there to read
     *
     * Items: A host path that the sandbox has at the same place
     */
    read: {
      /**
       * Host path
       */
      path: string
      /**
       * Why
       */
      reason: string
    }[]
    /**
     * Host paths that are there to write
     *
     * Items: A host path that the sandbox has at the same place
     */
    write: {
      /**
       * Host path
       */
      path: string
      /**
       * Why
       */
      reason: string
    }[]
    /**
     * Mounts that a server’s entry may ask for
     */
    mounts: 'none' | 'read' | 'write'
    /**
     * Size of /tmp, of the home and of /dev/shm, each, bytes
     */
    tmp_bytes: number
    /**
     * The home: empty, private and gone with the sandbox
     */
    home: 'private'
  }
  /**
   * What the server may connect to
   */
  network: {
    /**
     * An empty network, or one in which the listed names exist
     */
    mode: 'none' | 'allowlist'
    /**
     * Hosts that a server’s entry may ask for
     *
     * Items: A host and port that the server may connect to
     */
    allow: {
      /**
       * Exact name, or `*.name`
       */
      host: string
      /**
       * Exact port
       */
      port: number
      /**
       * Address that the host has, instead of what a resolver says: for an exact name; judged as a resolved one is. A server’s entry has the one of its profile’s entry, or both have none
       */
      address: string | null
      /**
       * Whether private, loopback and link-local addresses are allowed for the name
       */
      private: boolean
      /**
       * Why the server needs it
       */
      reason: string
    }[]
  }
  /**
   * Kinds of injection that a server may ask for
   *
   * Items: A kind
   */
  credentials: ('egress' | 'meta' | 'file' | 'env')[]
  /**
   * Whether the server may start programs
   */
  exec: 'any' | 'none'
  /**
   * Variables beyond the base
   */
  environment: {
    /**
     * Names of variables of the daemon that servers get
     *
     * Items: A variable of the daemon that servers get: its name, or {name, override} for one of a refused family
     */
    pass: (
      | string
      | {
          /**
           * Name
           */
          name: string
          /**
           * Why it is let through although its family loads code or carries secrets
           */
          override: string
        }
    )[]
    /**
     * Variables with their values: `NAME: value`, in quotes where YAML reads a number or a truth value
     */
    set: {
      /**
       * A value: a string, or {value, override} for a name of a refused family
       */
      [k: string]:
        | string
        | {
            /**
             * The value
             */
            value: string
            /**
             * Why it is let through although its family loads code or carries secrets
             */
            override: string
          }
    }
  }
  /**
   * System calls
   */
  syscalls: {
    /**
     * The list that it starts from
     */
    base: 'strict'
    /**
     * Calls allowed beyond the base
     *
     * Items: Name of a system call
     */
    allow: string[]
    /**
     * Calls refused although the base allows them
     *
     * Items: Name of a system call
     */
    deny: string[]
  }
  /**
   * How much of the machine
   */
  limits: {
    /**
     * Memory of the whole sandbox, bytes
     */
    memory_bytes: number
    /**
     * Processes and threads
     */
    pids: number
    /**
     * Cores, 0.5 is half of one
     */
    cpu: number
    /**
     * Open files of a process
     */
    open_files: number
    /**
     * Largest file that it can write, bytes
     */
    file_bytes: number
    /**
     * How firmly each limit must hold: `required` takes a cgroup or an rlimit or refuses the launch, `best-effort` falls to a watchdog
     */
    enforcement: {
      /**
       * Memory
       */
      memory: 'required' | 'best-effort'
      /**
       * Cores
       */
      cpu: 'required' | 'best-effort'
      /**
       * Processes
       */
      pids: 'required' | 'best-effort'
      /**
       * Open files and file size
       */
      files: 'required' | 'best-effort'
    }
  }
  /**
   * What must hold in a sandbox of this very profile; a profile that extends it states its own
   *
   * Items: One thing that must hold in the sandbox, which `sallyport verify` tries
   */
  assertions: {
    /**
     * What must hold, such as `cannot read /etc/shadow`
     */
    assert: string
    /**
     * Why it matters
     */
    reason: string
  }[]
}

/**
 * What the operator declares of a server's tools: nine fields each.
 */
export interface Declaration {
  /**
   * For editors
   */
  $schema?: string
  /**
   * Version of this format
   */
  version: 1
  /**
   * Name of the server
   */
  server: string
  /**
   * The version that the server says it is itself (`serverInfo`); nothing is accepted of one that says another. Absent: of whatever it says
   */
  said_version?: string
  /**
   * Name -> tool; what is not here is not accepted
   */
  tools: {
    /**
     * One tool; its name is its key
     */
    [k: string]: {
      /**
       * Version of the tool or of its schema
       */
      version: string
      /**
       * JSON Schema of the arguments, as the server lists it
       */
      parameters: {}
      /**
       * What it may do to the world
       *
       * Items: A class of side effects
       */
      side_effects: ('read' | 'write' | 'execute' | 'network' | 'secret-access' | 'other')[]
      /**
       * Paths as the server sees them, and host:port pairs, that it may touch
       *
       * Items: A path or a host with its port
       */
      resource_scopes: string[]
      /**
       * Credentials that a call may lease
       *
       * Items: Name of a credential of the server's entry
       */
      credentials: string[]
      /**
       * JSON Schema of the result as the server lists it, or null where it lists none
       */
      output: {} | null
      /**
       * Whether a second equal call changes anything
       */
      idempotency: 'idempotent' | 'non-idempotent' | 'unknown'
      /**
       * How it may fail, for those who decide
       *
       * Items: A way to fail
       */
      failure_modes: string[]
      /**
       * Digest of the whole tool as the server listed it when this was drafted; what is listed otherwise is not accepted
       */
      surface_digest?: string
    }
  }
}

/**
 * A test file of `sallyport verify --tests`: what must hold in the sandboxes of profiles and servers that it names.
 */
export interface Assertions {
  /**
   * Address of this schema, for editors
   */
  $schema: string
  /**
   * Version of the format
   */
  version: 1
  /**
   * What must hold
   *
   * @minItems 1
   *
   * Items: One thing that must hold
   */
  assertions: {
    /**
     * What must hold, such as `cannot read /etc/shadow`
     */
    assert: string
    /**
     * Why it matters
     */
    reason: string
    /**
     * Profiles for which it must hold, by name or glob; all that are verified where it is left out
     *
     * @minItems 1
     *
     * Items: A name or glob
     */
    profiles: string[]
    /**
     * Servers for which it must hold, by name or glob, and nothing else; where it is left out, all that is verified
     *
     * @minItems 1
     */
    servers: string[] | null
  }[]
}

/**
 * Parameters of the methods of host.sock and operator.sock.
 */
export interface Control {
  /**
   * Says who speaks, and asks the same
   */
  'sallyport/hello'?: {
    /**
     * Protocol that the caller speaks; any where absent
     */
    protocol?: string
  }
  /**
   * Lists the servers that the caller may see
   */
  'servers/list'?: {}
  /**
   * Shows one server
   */
  'servers/get'?: {
    /**
     * Server
     */
    server: string
  }
  /**
   * Starts the caller's instance
   */
  'servers/start'?: {
    /**
     * Server
     */
    server: string
  }
  /**
   * Stops the caller's instances
   */
  'servers/stop'?: {
    /**
     * Server
     */
    server: string
  }
  /**
   * Launches a server within the operator's `dynamic` settings
   */
  'servers/launch'?: {
    /**
     * Name of its own
     */
    name: string
    /**
     * A name in `allowed_commands`, never a path
     */
    command: string
    /**
     * Its arguments, as the sandbox sees them
     *
     * @maxItems 4096
     *
     * Items: An argument
     */
    args?: string[]
    /**
     * The server's code, read-only
     */
    package?: {
      /**
       * Folder of the code on the host
       */
      source: string
      /**
       * Where the sandbox has it
       */
      target: string
      /**
       * Further folders that the code resolves from
       *
       * @maxItems 64
       *
       * Items: A folder
       */
      with?: string[]
    }
  }
  /**
   * Stops a server for good and forgets it
   */
  'servers/remove'?: {
    /**
     * Server
     */
    server: string
  }
  /**
   * Lists the tools of one server or of all
   */
  'tools/list'?: {
    /**
     * Server; all where absent
     */
    server?: string
    /**
     * Whether what a search would find is listed too
     */
    all?: boolean
  }
  /**
   * Shows one tool in full
   */
  'tools/describe'?: {
    /**
     * Server
     */
    server: string
    /**
     * Tool, by the server's own name for it
     */
    tool: string
  }
  /**
   * Finds tools by what they are for
   */
  'tools/search'?: {
    /**
     * Words
     */
    query: string
    /**
     * Server; all where absent
     */
    server?: string
    /**
     * Most matches
     */
    limit?: number
  }
  /**
   * Calls a tool
   */
  'tools/call'?: {
    /**
     * Server
     */
    server: string
    /**
     * Tool, by the server's own name for it
     */
    tool: string
    /**
     * Arguments; an empty object where absent
     */
    arguments?: {}
    /**
     * Wait shorter than the server's `call_ms`, ms
     */
    timeout_ms?: number
    /**
     * Generation of the tool list that the caller saw
     */
    generation?: number
    /**
     * Opaque string that says what the call belongs to; its permit is good for no other
     */
    lineage?: string
  }
  /**
   * Cancels a call in flight
   */
  'calls/cancel'?: {
    /**
     * Call, of any connection of the caller's
     */
    call_id?: string
    /**
     * JSON-RPC id of a request in flight on this connection
     */
    request?: string | number
    /**
     * Why, for the server and the record
     */
    reason?: string
  }
  /**
   * Reads a piece of a result that was too long to be answered at once
   */
  'calls/output'?: {
    /**
     * Call of the caller's whose result was truncated
     */
    call_id: string
    /**
     * Where the piece begins, bytes: 0, or what the last answer gave as `next`
     */
    offset?: number
    /**
     * Most bytes of the piece
     */
    limit?: number
  }
  /**
   * Sends events on this connection from now on
   */
  'events/subscribe'?: {
    /**
     * Number of the last event that the caller has
     */
    since?: number
  }
  /**
   * Turns the connection into the server's MCP session
   */
  'session/attach'?: {
    /**
     * Server
     */
    server: string
    /**
     * Absolute path of the project whose file narrows
     */
    project?: string
    /**
     * Protocol that the caller speaks; any where absent
     */
    protocol?: string
  }
  /**
   * Says how a session ended
   */
  'session/result'?: {
    /**
     * Session
     */
    session: string
  }
  /**
   * Launches a server, shakes hands, compares what it lists with what was accepted, stops it
   */
  'servers/test'?: {
    /**
     * Server
     */
    server: string
  }
  /**
   * Shows what a server wrote to stderr
   */
  'servers/logs'?: {
    /**
     * Server
     */
    server: string
    /**
     * Most lines of the past
     */
    lines?: number
    /**
     * Whether lines to come are sent too
     */
    follow?: boolean
  }
  /**
   * Registers a server for good
   */
  'servers/add'?: {
    /**
     * Name of the server
     */
    server: string
    /**
     * Its entry, as under `servers` of a configuration
     */
    entry: {
      [k: string]: unknown
    }
    /**
     * Folder from which relative paths go; the root where absent
     */
    directory?: string
  }
  /**
   * Drafts a declaration from a confined run
   */
  'servers/declare'?: {
    /**
     * Server
     */
    server: string
  }
  /**
   * Stops a server for all and starts nothing of it until it is released
   */
  'servers/quarantine'?: {
    /**
     * Server
     */
    server: string
    /**
     * Why, for the record
     */
    reason?: string
  }
  /**
   * Ends a quarantine or a hold
   */
  'servers/release'?: {
    /**
     * Server, or name of a hold
     */
    name: string
    /**
     * Which of the two ends, where both have that name
     */
    what?: 'quarantine' | 'hold'
    /**
     * Why, for the record
     */
    reason?: string
  }
  /**
   * Places a checkpoint: calls that it covers are refused until it is released
   */
  'servers/hold'?: {
    /**
     * Its name; made of what it covers where absent
     */
    name?: string
    /**
     * Server; any where absent
     */
    server?: string
    /**
     * Tool, or a method that is governed as tools are; any where absent
     */
    tool?: string
    /**
     * Lineage; any where absent
     */
    lineage?: string
    /**
     * Why, for the record
     */
    reason?: string
  }
  /**
   * Lists the checkpoints that stand
   */
  'servers/holds'?: {}
  /**
   * Accepts what a server lists, as declared
   */
  'declarations/accept'?: {
    /**
     * Server
     */
    server: string
    /**
     * The declaration; without one the configured one, else the draft of this moment
     */
    declaration?: {
      [k: string]: unknown
    }
    /**
     * Only these; all where absent
     *
     * @maxItems 10000
     *
     * Items: Tool
     */
    tools?: string[]
  }
  /**
   * Lists the questions that wait and the approvals that stand
   */
  'approvals/list'?: {}
  /**
   * Shows the arguments of a question whole, a piece at a time
   */
  'approvals/text'?: {
    /**
     * Question
     */
    id: string
    /**
     * Where the piece begins; at the beginning where absent
     */
    offset?: number
  }
  /**
   * Says yes to a question
   */
  'approvals/approve'?: {
    /**
     * Question
     */
    id: string
    /**
     * How far the yes reaches; `once` where absent
     */
    scope?: 'once' | 'session' | 'policy'
  }
  /**
   * Says no to a question, or ends an approval that stands
   */
  'approvals/deny'?: {
    /**
     * Question or approval
     */
    id: string
    /**
     * Why, for the caller and the record
     */
    reason?: string
  }
  /**
   * Sends questions on this connection from now on; while it lasts, calls wait for answers
   */
  'approvals/subscribe'?: {}
  /**
   * Lists what tools have earned
   */
  'trust/list'?: {
    /**
     * Server; all where absent
     */
    server?: string
  }
  /**
   * Resets the trust of a tool, or of all tools of a server
   */
  'trust/reset'?: {
    /**
     * Server
     */
    server: string
    /**
     * Tool; all where absent
     */
    tool?: string
    /**
     * Why, for the record
     */
    reason?: string
  }
  /**
   * Lists the permits that live
   */
  'permits/list'?: {}
  /**
   * Ends permits before they are used
   */
  'permits/revoke'?: {
    /**
     * Permit
     */
    id?: string
    /**
     * Every permit of this server
     */
    server?: string
    /**
     * Why, for the record
     */
    reason?: string
  }
  /**
   * Looks into the journal
   */
  'audit/query'?: {
    /**
     * Only records behind this number
     */
    after?: number
    /**
     * Only records before this number
     */
    before?: number
    /**
     * Most records; 100 where absent
     */
    limit?: number
    /**
     * The first that match, or the last; `newest` where absent
     */
    from?: 'oldest' | 'newest'
    /**
     * Only records of this type; `call.*` is every type that begins so
     */
    type?: string
    /**
     * Only records about this server
     */
    server?: string
    /**
     * Only records of this call
     */
    call?: string
    /**
     * Only this record
     */
    seq?: number
    /**
     * Whether records to come are sent too
     */
    follow?: boolean
  }
  /**
   * Checks every record of the journal against its hash, its place and its key
   */
  'audit/verify'?: {
    /**
     * What was exported before and must still be there
     */
    anchor?: {
      /**
       * Number of the record
       */
      seq: number
      /**
       * Hash of the record
       */
      hash: string
    }
  }
  /**
   * Says what would be decided on a call, and by which rule
   */
  'policy/explain'?: {
    /**
     * Server
     */
    server: string
    /**
     * Tool, or a method such as resources/read
     */
    tool: string
    /**
     * Arguments; an empty object where absent
     */
    arguments?: {}
    /**
     * Lineage of the call
     */
    lineage?: string
  }
  /**
   * Says how a call was decided, by what is on record of it
   */
  'calls/explain'?: {
    /**
     * Call
     */
    call_id: string
  }
  /**
   * Reads the configuration again and goes over to it; only servers that it changes are stopped
   */
  'daemon/reload'?: {}
  /**
   * Stops every server, then the daemon
   */
  'daemon/shutdown'?: {
    /**
     * Why, for the record
     */
    reason?: string
  }
}
