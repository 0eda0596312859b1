// Just enough JSON to read one answer of the daemon. No allocation, bounded depth.
#ifndef SALLYPORT_JSON_H
#define SALLYPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct json {
  const char *at, *end;
};

// The value of a member of an object; false when it is absent, or the text is no object.
bool json_member(struct json object, const char *name, struct json *value);
// The text of a string, cut at `size`: escapes resolved, control characters as spaces.
bool json_text(struct json value, char *text, size_t size);
bool json_integer(struct json value, long *number);

#endif
