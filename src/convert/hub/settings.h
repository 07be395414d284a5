// Where models are downloaded from and kept, by the environment variables of the library huggingface_hub.
#pragma once

#include <string>

namespace qkv {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT; without a slash at its end
  std::string cache;         // HF_HUB_CACHE; default: `hub` in HF_HOME, which is ~/.cache/huggingface by default
  std::string token;         // HF_TOKEN, or the file `token` in HF_HOME; "" is none
  bool offline = false;      // HF_HUB_OFFLINE
  int timeout = 30;          // HF_HUB_DOWNLOAD_TIMEOUT: seconds without a byte after which a connection is given up
  std::string certificates;  // SSL_CERT_FILE; "" means those of the system
};

// Throws Error, naming the variable, if one has a value that cannot be used.
HubSettings read_hub_settings();

}  // namespace qkv
