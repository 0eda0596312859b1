// The lines that are told: a word, then fields between tabs, with every other byte than printable ASCII as \xNN.
#include "observe.h"

#include <string.h>
#include <unistd.h>

void tell_begin(const char *what) { fputs(what, stdout); }

void tell_text(const char *text) {
  putchar('\t');
  for (; *text != '\0'; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte < 0x20 || byte >= 0x7f || byte == '\\')
      printf("\\x%02x", byte);
    else
      putchar(byte);
  }
}

void tell_number(int64_t number) { printf("\t%lld", (long long)number); }

void tell_end(void) { putchar('\n'); }

// The text of a link below /proc of one process; false where there is none, or it is no path.
bool link_of(char text[PATH_BYTES], const char *format, pid_t pid, int number) {
  char path[64];
  snprintf(path, sizeof path, format, pid, number);
  ssize_t length = readlink(path, text, PATH_BYTES - 1);
  if (length <= 0 || text[0] != '/') return false;
  text[length] = '\0';
  return true;
}
