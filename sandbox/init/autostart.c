// Starts a daemon on behalf of the first host: in its own session, with an environment that is listed here.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "init.h"
#include "shim.h"

extern char **environ;

enum { PATH_BYTES = 4096, VARIABLES_MAX = 64 };

// The package that this binary belongs to: `<package>/dist/libexec/<arch>/sallyport-init`.
static bool find_package(char package[PATH_BYTES]) {
  ssize_t length = readlink("/proc/self/exe", package, PATH_BYTES - 1);
  if (length <= 0) return false;
  package[length] = '\0';
  for (int folder = 0; folder < 4; folder++) {
    char *slash = strrchr(package, '/');
    if (slash == NULL) return errno = ENOENT, false;
    *slash = '\0';
  }
  return true;
}

static bool is_passed(const char *variable) {
  static const char *const names[] = {"PATH=", "HOME=", "USER=", "LANG=", "SALLYPORT_"};
  for (size_t index = 0; index < sizeof names / sizeof names[0]; index++)
    if (strncmp(variable, names[index], strlen(names[index])) == 0) return true;
  return false;
}

static void keep_listed_environment(void) {
  static char *kept[VARIABLES_MAX + 1];
  size_t count = 0;
  for (char **variable = environ; *variable != NULL && count < VARIABLES_MAX; variable++)
    if (is_passed(*variable)) kept[count++] = *variable;
  environ = kept;
}

static _Noreturn void become_daemon(const char *package) {
  static char node[PATH_BYTES + 64], main_file[PATH_BYTES + 64];
  snprintf(node, sizeof node, "%s/node_modules/node/bin/node", package);
  snprintf(main_file, sizeof main_file, "%s/dist/cli/main.js", package);
  char *argv[] = {"node", main_file, "serve", "--background", NULL};
  // stdin and stdout are the host's MCP streams; stderr stays, for the one line that says why it failed.
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || setsid() < 0 ||
      chdir("/") != 0)
    _exit(STATUS_UNAVAILABLE);
  keep_listed_environment();
  reset_signals();
  execv(node, argv);
  execvp("node", argv);
  _exit(STATUS_UNAVAILABLE);
}

int start_daemon(void) {
  static char package[PATH_BYTES];
  if (!find_package(package)) return -1;
  pid_t child = fork();
  if (child == 0) become_daemon(package);
  return child;
}
