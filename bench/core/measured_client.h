// Measurements made in a client process of their own.
#pragma once

#include <chrono>
#include <utility>

#include "child.h"
#include "lrpc/detail/shim/result.h"
#include "placement.h"

namespace lrpc::bench {

/// Forks a client on `seat` that runs measure(figures), and returns the figures that this has filled in. Blocks until
/// it has ended, at most two minutes. `Figures` must be valid when zeroed, as Shared requires. Errors: those of Shared
/// and Child; call_failed, with the reason, if `measure` fails.
template <class Figures, class Measure>
Result<Shared<Figures>> measured_by_client(const Seat& seat, Measure&& measure) {
  auto figures = Shared<Figures>::create();
  if (!figures) return figures.error();
  const Status ran = run_client(seat, std::chrono::minutes(2), [&]() -> Status {
    const Status done = measure(**figures);
    if (!done) return Error{Errc::call_failed, "the client: " + done.error().message()};
    return {};
  });
  if (!ran) return ran.error();
  return std::move(*figures);
}

}  // namespace lrpc::bench
