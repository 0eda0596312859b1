// What no server may have, by name: a list of its own, so that what goes missing from the one that launches are held to is missed.
import { words } from '../../lib/words.ts'

/** Of the machine: what runs it, and what its administration keeps. */
export const machineNames = words(`
  /proc /sys /dev /run /var/run /boot /efi /lost+found /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow-
  /etc/sudoers /etc/sudoers.d /etc/ssh /etc/ssl/private /etc/pki/tls/private /etc/krb5.keytab
  /etc/security/opasswd /etc/crontab /etc/cron.d /etc/cron.daily /etc/cron.hourly /etc/docker
  /etc/containerd /etc/kubernetes /etc/rancher /etc/cni /etc/systemd /etc/NetworkManager /etc/wireguard
  /etc/letsencrypt /etc/sallyport /var/lib/sallyport /var/lib/docker /var/lib/containerd /var/lib/containers
  /var/lib/kubelet /var/lib/rancher /var/lib/sss /var/lib/systemd /var/spool/cron /var/lib/cloud
  /tmp/.X11-unix /tmp/.ICE-unix
`)

/** Below a home, as people have one. */
export const homeNames = words(`
  .ssh .gnupg .pki .password-store .config/age .config/sops .minisign .local/share/gnupg .aws .azure
  .config/gcloud .boto .s3cfg .oci .aliyun .config/doctl .config/hcloud .config/scaleway .config/linode-cli
  .config/rclone .config/flyctl .fly .config/heroku .terraform.d .terraformrc .pulumi .vault-token
  .config/op .1password .config/1Password .config/Bitwarden .config/gh .config/glab-cli .config/hub
  .config/github-copilot .npmrc .yarnrc .yarnrc.yml .pypirc .config/pip .pip .netrc _netrc .git-credentials
  .config/git/credentials .gem/credentials .cargo/credentials .cargo/credentials.toml .composer/auth.json
  .config/composer/auth.json .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .nuget
  .config/NuGet .bundle/config .hex .docker .kube .config/containers .local/share/containers .minikube
  .config/helm .config/k9s .rancher .pgpass .my.cnf .mylogin.cnf .mongorc.js .config/redis .mozilla
  .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi
  .config/opera .cache/mozilla snap/firefox snap/chromium .thunderbird .config/Slack .config/discord
  .config/Signal .local/share/keyrings .local/share/kwalletd .Xauthority .ICEauthority .dbus .config/systemd
  .config/autostart .config/environment.d .bash_history .zsh_history .zhistory .history
  .local/share/fish/fish_history .python_history .node_repl_history .psql_history .mysql_history
  .sqlite_history .lesshst .viminfo .local/share/mc .claude .claude.json .codex .gemini .config/anthropic
  .config/openai .cursor/mcp.json .config/zed .config/Claude .continue .aider.conf.yml .config/sallyport
  .local/state/sallyport
`)

/** Variables by which a daemon knows the socket of somebody who would act for a server. */
export const socketNames = words(`
  SSH_AUTH_SOCK SSH_AGENT_LAUNCHER GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS
  DOCKER_HOST CONTAINER_HOST PODMAN_HOST CONTAINERD_ADDRESS BUILDKIT_HOST WAYLAND_DISPLAY PULSE_SERVER
  PIPEWIRE_REMOTE TMUX SWAYSOCK I3SOCK NIRI_SOCKET VSCODE_IPC_HOOK VSCODE_IPC_HOOK_CLI VSCODE_GIT_IPC_HANDLE
  SALLYPORT_RUNTIME_DIR SALLYPORT_STATE_DIR XDG_RUNTIME_DIR
`)

/** In a project: what makes the host run something. */
export const projectNames = words(`
  .git .hg .svn .bzr .jj _darcs .fslckout CVS .gitmodules .gitattributes .gitconfig .husky .githooks
  .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook .github .gitlab-ci.yml .circleci .envrc
  .direnv mise.toml .mise.toml .tool-versions .vscode .idea .cursor .cursorrules .windsurf .windsurfrules
  .zed .fleet .devcontainer .vs .nova .sublime-project .claude .codex .gemini .agents .continue .roo
  .roomodes .clinerules .aider.conf.yml .kiro .qwen .opencode opencode.json .mcp.json mcp.json AGENTS.md
  CLAUDE.md CLAUDE.local.md GEMINI.md .sallyport.yaml .sallyport.yml .sallyport.json sallyport.yaml
  sallyport.yml sallyport.json .sallyport .profile .login .bashrc .bash_profile .bash_login .bash_logout
  .bash_aliases .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .inputrc .xprofile
  .xinitrc .xsessionrc .vimrc .exrc .nvimrc .ripgreprc .tmux.conf .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs
  .pnpmfile.mjs bunfig.toml .pypirc pip.conf .cargo .bundle .gdbinit .lldbinit
`)
