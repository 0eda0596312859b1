// No argument becomes code: interpreters get a script, package runners one pinned package, launchers nothing.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { judgeArguments, type JudgedArguments } from '../../../src/sandbox/program/arguments.ts'
import { kindByName } from '../../../src/sandbox/program/command-kind.ts'
import { expectRefusal } from '../../support/refusal.ts'
import { words } from '../../../src/lib/words.ts'

const judge = (command: string, args: readonly string[], options: readonly string[] = []): JudgedArguments =>
  judgeArguments({ server: 'probe', command, kind: kindByName(command, command, command), args, options })

const refuse = (command: string, args: readonly string[], ...words: readonly string[]): Promise<void> =>
  expectRefusal(() => judge(command, args), 'ERR_ARGUMENT_REFUSED', 'probe', ...words)

const script = '/app/dist/index.js'

describe('an interpreter', () => {
  test.each(
    words(`
      node nodejs node22 node-22.1 Node bun deno tsx python python3 python3.12 python3.13t python3.11-dbg
      pypy3 ruby3.1 perl perl5.36.0 perl5.36-x86_64-linux-gnu php8.2 lua5.4 luajit tclsh8.6 sh bash bash5
      bash-static dash zsh-5.9 fish ksh93 java dotnet Rscript julia pwsh guile
    `),
  )('%s runs a script and no code', async (command) => {
    expect(judge(command, [script, 'a', ''])).toEqual({ args: [script, 'a', ''], script })
    await refuse(command, ['-e', 'code'], 'args[0] "-e"', `interpreter_options.${command}`)
    await refuse(command, [], 'stdin')
  })

  test('that stops at its script gives it the rest, and one that does not gets no option behind it', async () => {
    for (const command of words('node bun deno python3 ruby perl php lua tclsh sh bash zsh java'))
      expect(judge(command, [script, '-e', '--eval=x']).args).toEqual([script, '-e', '--eval=x'])
    for (const command of words('Rscript julia sbcl erl electron dotnet jshell'))
      await refuse(command, [script, 'a', '-e', 'code'], 'args[2] "-e"')
  })

  test.each(
    words(`
      -e --eval --eval=1 -p -pe --print -c -m -r --require --require=/x -i --import
      --import=data:text/javascript,1 --experimental-loader --loader=data: --inspect --inspect-brk=0.0.0.0
      --env-file=/workspace/.env - -- --input-type=module --run --test -S --no-warnings
      --max-old-space-size=10 -x +x --experimental-sea-config -C --watch
    `),
  )('node never takes %s from a server’s args', async (flag) => {
    for (const args of [[flag], [flag, script], [flag, 'code', script]]) await refuse('node', args, 'args[0]')
  })

  test.each([
    ...words(`
      index.js ./index.js ../index.js /app/../dev/stdin /app//x.js /app/ inspect run
      data:text/javascript,1 file:///app/x.js https://x/y.js node:repl
    `),
    '',
    ' ',
    '/app/x.js\n',
    '/dev/stdin',
    '/dev/fd/0',
    '/proc/self/fd/0',
    '/sys/x.js',
    '/proc',
    '/app/x.js\0',
    '\t/app',
  ])('takes no %j for a script', async (path) => {
    await refuse('node', [path])
    await refuse('python3', [path])
  })

  test('gets the operator’s options before the script, and they take no code either', async () => {
    const options = ['--max-old-space-size=256', '--import', '/app/instrument.mjs']
    expect(judge('node', [script, 'a'], options).args).toEqual([...options, script, 'a'])
    expect(judge('deno', ['/app/x.ts'], ['run', '--allow-read']).args).toEqual([
      'run',
      '--allow-read',
      '/app/x.ts',
    ])
    const fine: readonly (readonly [string, string])[] = [
      ['python3', '-Wignore'],
      ['python3', '-Ximporttime'],
      ['python3', '-u'],
      ['perl', '-I/app/lib'],
      ['ruby', '-rbundler'],
      ['bash', '-eu'],
      ['node', '--enable-source-maps'],
      ['java', '-jar'],
    ]
    for (const [command, option] of fine)
      expect(judge(command, [script], [option]).args).toEqual([option, script])
    const code: readonly (readonly [string, string])[] = [
      ...(
        [
          '-e',
          '--eval=1',
          '-p',
          '-',
          '--import=data:text/javascript,1',
          '--import=DATA:,1',
          '--import=da\nta:,1',
          '-i',
        ] as const
      ).map((o) => ['node', o] as const),
      ...(['-c', '-Bc', '-m', '-i', '-'] as const).map((o) => ['python3', o] as const),
      ...(['-c', '-ec', '-s', '+c', '-', '-i'] as const).map((o) => ['bash', o] as const),
      ['perl', '-e'],
      ['perl', '-lne'],
      ['perl', '-MPOSIX'],
      ['perl', '-wM5;code'],
      ['python3', '-uc'],
      ['python3', '-Bm'],
      ['ruby', '-e'],
      ['php', '-r'],
      ['deno', 'eval'],
    ]
    for (const [command, option] of code)
      await expectRefusal(
        () => judge(command, [script], [option]),
        'ERR_ARGUMENT_REFUSED',
        `interpreter_options.${command}[0]`,
      )
  })

  test('accepts, of any arguments, only a normal absolute path in the script’s place', () => {
    const flag = fc.constantFrom(
      '-e',
      '--eval=1',
      '-c',
      '-m',
      '-r',
      '-',
      '--',
      '/dev/../x',
      'x.js',
      '--import',
      'data:,1',
    )
    const argument = fc.oneof(flag, fc.string(), fc.webPath(), fc.constant(script))
    fc.assert(
      fc.property(fc.array(argument, { maxLength: 5 }), (args) => {
        let judged: JudgedArguments
        try {
          judged = judge('node', args, ['--enable-source-maps'])
        } catch {
          return
        }
        expect(judged.args).toEqual(['--enable-source-maps', ...args])
        expect(judged.script).toBe(args[0])
        expect(args[0]).toMatch(/^\/[^\0-\x1f]*$/)
        expect(args[0]?.split('/').slice(1)).not.toContain('..')
      }),
    )
  })
})

describe('a launcher', () => {
  test.each(
    words(`
      env busybox xargs find sudo nohup timeout nice setsid stdbuf strace script awk sed make git vim ssh
      bwrap setpriv unshare nsenter chroot flock tini docker pip cargo corepack ld-linux-x86-64.so.2
      ld-musl-aarch64.so.1 ld.so
    `),
  )('%s is no command', async (command) => {
    await refuse(command, ['node', script], command, 'name that program itself')
    await refuse(command, [])
  })

  test('hides behind no other name', async () => {
    for (const [name, path, real] of [
      ['node', '/usr/bin/node', '/usr/bin/env'],
      ['tool', '/opt/tool', '/lib/ld-linux-x86-64.so.2'],
      ['env', '/opt/node', '/opt/node'],
      ['tool', '/opt/busybox', '/opt/busybox'],
    ] as const)
      await expectRefusal(
        () =>
          judgeArguments({
            server: 'probe',
            command: name,
            kind: kindByName(name, path, real),
            args: [script],
            options: [],
          }),
        'ERR_ARGUMENT_REFUSED',
      )
  })

  test('with many faces is what it is called', () => {
    expect(kindByName('sh', '/bin/sh', '/bin/busybox')).toMatchObject({ interpreter: { name: 'shell' } })
  })
})

describe('a package runner', () => {
  test.each([
    ['npx', ['server@1.2.3', '-e'], ['server@1.2.3', '-e']],
    ['npx', ['@scope/server@2026.8.31'], ['@scope/server@2026.8.31']],
    ['npx', ['server@1.2.3-beta.1'], ['server@1.2.3-beta.1']],
    ['bunx', ['server@1.2.3'], ['server@1.2.3']],
    ['npm', ['exec', 'server@1.2.3', '--package=evil'], ['exec', '--', 'server@1.2.3', '--package=evil']],
    ['pnpm', ['dlx', 'server@1.2.3'], ['dlx', 'server@1.2.3']],
    ['yarn', ['dlx', 'server@1.2.3'], ['dlx', 'server@1.2.3']],
    ['uvx', ['mcp-server==2025.1.14'], ['mcp-server==2025.1.14']],
    ['uvx', ['mcp-server@1.2.3'], ['mcp-server@1.2.3']],
    ['uvx', ['server[cli]==1.2rc1'], ['server[cli]==1.2rc1']],
    ['uv', ['tool', 'run', 'server==1.2'], ['tool', 'run', 'server==1.2']],
    ['pipx', ['run', 'server==1.2'], ['run', 'server==1.2']],
  ])('%s %j runs one pinned package', (command, args, started) => {
    expect(judge(command, args)).toEqual({ args: started, script: null })
  })

  test.each([
    ...words(`
      server server@latest server@next server@^1.2.3 server@~1.2 server@1 server@1.x server@*
      server@>=1.0.0 @scope/server @scope@1.2.3 git+https://x/y github:a/b a/b a/b#1.2.3 https://x/y.tgz
      file:../evil ./evil ../evil@1.2.3 /workspace /app/x.js . server@npm:evil@1.2.3 server@file:1.2.3 -y
      --yes -p --call=x -c --package=evil -- ~/evil
    `),
    'server@1.2.3 || 2',
    'server@1.2.3\n',
    'SERVER@1.2.3 ',
    '',
  ])('npx does not run %j', async (spec) => {
    await refuse('npx', [spec, 'server@1.2.3'], 'args[0]')
  })

  test.each([
    ...words(`
      server server== server==1.* server>=1 server~=1.2 server@latest server@main ./server git+https://x
      --from --with=evil - server==1.2;os_name server===1
    `),
    'server @ https://x/y',
  ])('uvx does not run %j', async (spec) => {
    await refuse('uvx', [spec, 'server==1.2'], 'args[0]')
  })

  test('is no way to its other verbs', async () => {
    for (const [command, verb] of [
      ['npm', 'run'],
      ['npm', 'install'],
      ['npm', 'server@1.2.3'],
      ['pnpm', 'exec'],
      ['yarn', 'node'],
      ['uv', 'run'],
      ['uv', 'pip'],
      ['pipx', 'install'],
    ] as const)
      await refuse(command, [verb, 'server@1.2.3'], verb)
    await refuse('npm', ['exec'], 'no package')
    await refuse('npx', [])
  })

  test('takes options from the operator alone, and none that name code or another package', async () => {
    expect(judge('npx', ['server@1.2.3'], ['-y', '--offline']).args).toEqual([
      '-y',
      '--offline',
      'server@1.2.3',
    ])
    for (const option of ['-c', '--call=x', '-p', '--package=evil'])
      await expectRefusal(() => judge('npx', ['server@1.2.3'], [option]), 'ERR_ARGUMENT_REFUSED', option)
    for (const option of ['--from', '--with=evil', '--with-editable=.'])
      await expectRefusal(() => judge('uvx', ['server==1'], [option]), 'ERR_ARGUMENT_REFUSED', option)
  })
})

describe('every program', () => {
  test('gets its arguments as they are, empty, with newlines and in any language', () => {
    const args = ['', 'a b', 'a\nb', 'ü', '-e', '--', '$(x)', '*']
    expect(judge('server', args)).toEqual({ args, script: null })
  })

  test('gets no NUL and no more than the sizes', async () => {
    await refuse('server', ['a', 'b\0c'], 'args[1]', 'NUL')
    await refuse('server', ['x'.repeat(131_072)], 'args[0]', '131071')
    const longest = ['x'.repeat(131_071)]
    expect(judge('server', longest)).toEqual({ args: longest, script: null })
    await refuse('server', Array<string>(1_025).fill(''), '1024')
    await refuse('server', Array<string>(6).fill('x'.repeat(60_000)), 'together')
  })

  test('that is no interpreter has no interpreter options', async () => {
    await expectRefusal(
      () => judge('server', [], ['-x']),
      'ERR_ARGUMENT_REFUSED',
      'interpreter_options.server',
    )
  })
})
