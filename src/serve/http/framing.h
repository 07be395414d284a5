// Where a request begins and ends. Programs that disagree about that, such as a proxy and the server behind it, can be
// made to see requests that nobody sent (request smuggling), so everything that RFC 9112 leaves open is refused.
#pragma once

#include <string_view>

#include "serve/http/request_reader.h"

namespace qkv {

// Returns the number of bytes of the head, including its empty line; 0 if it is not complete. `scanned` is 0 in the
// first call, and counts the bytes seen. Throws HttpError 414 and 431 for a head that is too long.
size_t find_head_end(std::string_view bytes, size_t& scanned, const HttpLimits& limits);

// Checks the lines of a complete head. Throws HttpError 400 for a line end that is not CRLF, control characters, a
// request line that is not "METHOD TARGET HTTP/d.d", and a header that continues on the next line; 431 for too many
// headers.
void check_lines(std::string_view head, const HttpLimits& limits);

// Sets host, content_length, chunked and expects_continue from the headers. Throws HttpError 400 if they do not say
// clearly how long the body is and whom the request is for, 417 for an unknown expectation, and 501 for a coding that
// is not chunked.
void check_framing(RequestHead& head);

}  // namespace qkv
