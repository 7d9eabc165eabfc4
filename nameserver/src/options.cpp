#include "options.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "lrpc/detail/shim/no_limit.h"
#include "quota/user_accounts.h"

namespace lrpc::nameserver {

using std::chrono::milliseconds;

Status check_options(const NameserverOptions& options) {
  const Limits& limits = options.limits;
  for (const QuotaName& one : kQuotaNames) {
    const std::string name = std::string("Limits::user.") + one.key;
    if (Status sound = shim::check_count(name.c_str(), limits.user.*one.limit); !sound) return sound;
  }
  const std::initializer_list<std::pair<const char*, std::uint64_t>> counts = {
      {"Limits::max_connections", limits.max_connections},
      {"Limits::max_names", limits.max_names},
      {"Limits::max_declaration_bytes", limits.max_declaration_bytes},
      {"Limits::max_imports", limits.max_imports},
      {"Limits::max_binds", limits.max_binds},
      {"Limits::max_exports_per_connection", limits.max_exports_per_connection},
      {"Limits::max_export_bytes_per_connection", limits.max_export_bytes_per_connection},
      {"Limits::max_imports_per_connection", limits.max_imports_per_connection},
      {"Limits::max_binds_per_server", limits.max_binds_per_server},
      {"Limits::max_queued_messages", limits.max_queued_messages},
      {"Limits::max_fds_in_flight_per_connection", limits.max_fds_in_flight_per_connection},
      {"Limits::max_fds_in_flight", limits.max_fds_in_flight},
      {"Limits::max_region_bytes", limits.max_region_bytes},
  };
  for (const auto& [name, count] : counts)
    if (Status sound = shim::check_count(name, count); !sound) return sound;
  const std::initializer_list<std::pair<const char*, milliseconds>> spans = {
      {"NameserverOptions::bind_timeout", options.bind_timeout},
      {"NameserverOptions::unread_timeout", options.unread_timeout},
      {"NameserverOptions::allocator_tick", options.allocator_tick},
  };
  for (const auto& [name, span] : spans)
    if (Status sound = shim::check_span(name, span); !sound) return sound;
  return {};
}

void cut_to_what_the_clock_can_tell(NameserverOptions& options) noexcept {
  constexpr milliseconds kYear = std::chrono::hours(24 * 365);
  options.bind_timeout = std::min(options.bind_timeout, kYear);
  for (milliseconds* const span : {&options.unread_timeout, &options.allocator_tick})
    if (!(*span == kNoLimit)) *span = std::min(*span, kYear);
}

}  // namespace lrpc::nameserver
