// The log of lrpc-directory's parts, which their creator passes in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace lrpc::directory {

enum class Severity : std::uint8_t { info, warning };
using Log = std::function<void(Severity, const std::string&)>;

}  // namespace lrpc::directory
