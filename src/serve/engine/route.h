// The routes of the server. A route is one entry of a table: its method and path, and the function that answers it.
// Errors have the form that the clients of its family expect.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/http_reply.h"

namespace qkv {

class Call;
class Exchange;
class Service;

// The programs that a route is compatible with, which decide what errors look like.
enum class Family { native, openai, libretranslate, tei, gorse };

// The media types that a body may have.
enum class BodyType { none, json, json_or_form, multipart };

// The ways in which a request uses a model.
enum class ModelUse { none, translate, generate, recommend, embed, classify };
inline constexpr std::array kModelUses = {ModelUse::translate, ModelUse::generate, ModelUse::recommend, ModelUse::embed,
                                          ModelUse::classify};

struct Route {
  std::string_view method;  // GET answers HEAD, too
  std::string_view path;    // "{}" stands for one segment
  Family family = Family::native;
  void (*answer)(const std::shared_ptr<Call>&) = nullptr;  // on the prepare thread, now or later
  BodyType body = BodyType::none;
  ModelUse use = ModelUse::none;  // each request needs a model for this
  bool is_open = false;           // needs no key
  // Instead of `answer`: on the I/O thread, at once, also while models load and requests drain.
  HttpReply (*answer_at_once)(const Service&, const Exchange&) = nullptr;
  bool has_key_in_body = false;  // the answer calls Call::identify with the key that the body may have
};

struct RouteMatch {
  const Route* route = nullptr;    // null: nothing matches
  std::vector<std::string> parts;  // what "{}" stands for
  std::string allowed;             // the methods of the path, if another one was requested
  Family family = Family::native;  // of the route, or of the first one with this path
};

// Returns the route of a request among those of all families.
RouteMatch find_route(std::string_view method, std::string_view path);

// Returns an error in the form that clients of a family expect.
HttpReply error_reply(Family family, const HttpError& error);
// The object of an error in a stream of events.
std::string error_json(const HttpError& error);

}  // namespace qkv
