// The folder whose .sallyport.yaml narrows the session, as the host named it, in the words of `session/attach`.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim.h"

// A path may hold what JSON escapes; bytes that are not UTF-8 are left for the daemon to refuse.
static void quote(const char *text, char *out) {
  for (; *text != '\0'; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte < 0x20 || byte == '"' || byte == '\\')
      out += sprintf(out, "\\u%04x", byte);
    else
      *out++ = *text;
  }
  *out = '\0';
}

const char *project_member(const char *folder) {
  static char path[2 * PATH_MAX], member[PROJECT_MAX_BYTES], quoted[PROJECT_MAX_BYTES - 16];
  size_t length = 0;
  if (folder == NULL) return "";
  // As where a variable of the host's is unset: the current folder is none that anybody named.
  if (folder[0] == '\0') give_up(STATUS_USAGE, "--project: got nothing, expected a folder; name one, or leave --project out", "");
  // Relative to where the host started us, which is the project itself for many.
  if (folder[0] != '/') {
    if (getcwd(path, PATH_MAX) == NULL) give_up(STATUS_USAGE, "--project: the current folder cannot be told, so name an absolute one: ", strerror(errno));
    length = strlen(path);
    path[length++] = '/';
  }
  if (length + strlen(folder) >= PATH_MAX)
    give_up(STATUS_USAGE, "--project: expected a path of at most 4095 bytes; name the folder by a shorter one, got: ", folder);
  strcpy(path + length, folder);
  // One that is not there narrows nothing, as a variable that the host left as it is, and nobody would be told. Looked at here, since
  // the daemon may see what this user may not.
  struct stat status;
  if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
    give_up(STATUS_USAGE, "--project: expected a folder that is there; name one, or leave --project out, got: ", path);
  quote(path, quoted);
  snprintf(member, sizeof member, ",\"project\":\"%s\"", quoted);
  return member;
}
