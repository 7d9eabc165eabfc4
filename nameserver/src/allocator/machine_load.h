// Reads the machine's load for the processor allocator.
#pragma once

#include <optional>
#include <string_view>

#include "lrpc/nameserver.h"

namespace lrpc::nameserver {

/// What /proc/uptime and /proc/loadavg say; none if a file does not have the expected form.
struct IdleTime {
  double up = 0;    ///< Seconds since the machine started.
  double idle = 0;  ///< Seconds that processors were idle since, added up.
};
std::optional<IdleTime> parse_uptime(std::string_view text);
std::optional<unsigned> parse_running(std::string_view loadavg);

}  // namespace lrpc::nameserver
