#include "domain.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lrpc/detail/shim/no_limit.h"
#include "lrpc/detail/shim/system/processor.h"
#include "server_options.h"

namespace lrpc::server {
namespace {

/// Limits the durations, even though nothing is exported if they are wrong (options_checked()): a thread that sleeps
/// for a negative duration, or for the longest that can be written, would sleep without bound.
ServerOptions sound(ServerOptions options) noexcept {
  if (!(options.estack_idle == kNoLimit)) {
    options.estack_idle = std::clamp<std::chrono::milliseconds>(options.estack_idle, std::chrono::milliseconds(1),
                                                                std::chrono::hours(24));
  }
  options.poll_window =
      std::clamp<std::chrono::microseconds>(options.poll_window, std::chrono::microseconds(0), std::chrono::seconds(1));
  return options;
}

}  // namespace

Domain::Domain(ServerOptions options)
    : options_checked_(check_options(options)),
      options_(sound(std::move(options))),
      grant_([this] { (void)watcher_.post(wake_allocator_); }),
      bindings_(options_, grant_, watcher_),
      clerk_(options_.nameserver, bindings_, grant_, watcher_),
      private_sockets_(bindings_, watcher_),
      watcher_("lrpc-clerk") {
  (void)shim::ticks_per_microsecond();  // measure now, not in the first call
}

Domain::~Domain() {
  clerk_.close();  // no new bindings
  private_sockets_.close();
  bindings_.end_all();
}

bool Domain::abandon() {
  if (!bindings_.runs_here() && !watcher_.on_watcher_thread()) return false;
  clerk_.close();
  private_sockets_.close();
  bindings_.abandon_all();
  return true;
}

ServerStatistics Domain::statistics() {
  ServerStatistics counted;
  bindings_.count(counted);
  counted.granted_pollers = std::min({grant_.granted(), options_.pollers, PollerTeam::kMost});
  counted.polling = grant_.polling();
  counted.allocator_page = grant_.has_page();
  return counted;
}

}  // namespace lrpc::server
