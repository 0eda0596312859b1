// Where host.sock is, for a host that passes no XDG variables on: the daemon's places in the daemon's order.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim.h"

static char path[sizeof((struct sockaddr_un *)0)->sun_path];

static const char *joined(const char *folder, const char *rest) {
  int length = snprintf(path, sizeof path, "%s%s", folder, rest);
  if (length < 0 || (size_t)length >= sizeof path)
    give_up(
        STATUS_USAGE,
        "the socket's path is longer than 107 bytes; set SALLYPORT_RUNTIME_DIR to a shorter one: ", folder);
  return path;
}

/* As the daemon reads it: no two programs may find different folders by it, wherever they stand and whatever is a link. */
static int is_one_place(const char *folder) {
  if (folder[0] != '/') return 0;
  for (const char *part = folder; part != NULL; part = strchr(part + 1, '/'))
    if (strncmp(part, "/..", 3) == 0 && (part[3] == '/' || part[3] == '\0')) return 0;
  return 1;
}

const char *socket_path(void) {
  const char *runtime = getenv("SALLYPORT_RUNTIME_DIR");
  if (runtime != NULL && runtime[0] != '\0') {
    if (!is_one_place(runtime))
      give_up(STATUS_USAGE,
              "SALLYPORT_RUNTIME_DIR has to be an absolute path without .., mend it or leave it out: ", runtime);
    return joined(runtime, "/host/host.sock");
  }
  if (getuid() == 0) return joined("/run/sallyport", "/host/host.sock");

  char run_user[32];
  struct stat status;
  snprintf(run_user, sizeof run_user, "/run/user/%u", getuid());
  if (stat(run_user, &status) == 0) return joined(run_user, "/sallyport/host/host.sock");

  const char *home = getenv("HOME");
  if (home == NULL || home[0] != '/')
    give_up(STATUS_UNAVAILABLE, "no socket: neither SALLYPORT_RUNTIME_DIR nor HOME is set",
            "; give --socket PATH");
  return joined(home, "/.local/state/sallyport/run/host/host.sock");
}
