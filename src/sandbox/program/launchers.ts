// The programs that execute what their arguments name, or take a program's text as an argument: none is a command.
import { words } from '../../lib/words.ts'

const launchers: ReadonlySet<string> = new Set(
  words(`
    env busybox toybox coreutils xargs find fd parallel run-parts watch time gtime script expect unbuffer rlwrap
    nohup timeout nice ionice chrt taskset numactl stdbuf setsid flock prlimit choom setarch linux32 linux64
    i386 x86_64 uname26 faketime eatmydata fakeroot proot catchsegv strace ltrace perf gdb lldb valgrind rr
    sudo doas su sg newgrp runuser setpriv capsh pkexec unshare nsenter chroot bwrap firejail nsjail machinectl
    systemd-run systemctl start-stop-daemon daemon at batch crontab init tini dumb-init catatonit runsv pm2
    nodemon forever concurrently supervisord screen tmux ssh sshpass dbus-run-session dbus-launch xvfb-run
    proxychains proxychains4 torsocks tsocks docker podman nerdctl kubectl ctr runc crun snap flatpak
    awk gawk mawk nawk original-awk sed ed ex vi vim nvim emacs nano less more man make gmake ninja cmake just task
    git hg svn tar sqlite3 psql mysql gnuplot gs bc dc nix-shell
    corepack volta asdf mise nvm fnm pyenv rbenv direnv nix cargo go rustup gem bundle rake conda mamba
    pip pip3 poetry pdm hatch rye tox nox
  `),
)

/** The dynamic loader runs whatever program it is given. */
const loader = /^ld(?:-linux.*|-musl.*|64|-\d.*)?\.so(?:\..*)?$/

const markers: Readonly<Record<string, string>> = {
  'BusyBox v': 'busybox',
  LD_TRACE_LOADED_OBJECTS: 'the dynamic loader',
}

/** Executables whose own first argument, their name, says which program they are. */
const manyFaced: ReadonlySet<string> = new Set(['busybox', 'toybox', 'coreutils'])

/** Returns the first of the file names that is a launcher's, or null. */
export const launcherCalled = (names: readonly string[]): string | null =>
  names.find((name) => launchers.has(name) || loader.test(name)) ?? null

/** Returns the launcher whose executable holds the marker, or null. */
export const launcherMarked = (marker: string): string | null => markers[marker] ?? null

/** Says whether an executable of this name is the program that it is called as. */
export const isManyFaced = (name: string): boolean => manyFaced.has(name)

/** Bytes that only launchers hold. */
export const launcherMarkers: readonly string[] = Object.keys(markers)
