// A client that measures in a process of its own, so that this one keeps the threads that it has.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "child.h"
#include "lrpc/detail/shim/result.h"
#include "placement.h"

namespace lrpc::bench {

/// What measure(figures) has written there, in a child on `seat`; blocks until it is done, for two minutes at most.
/// `Figures` is as Shared's T. Errors: those of Shared and Child; call_failed, with the reason, if `measure` fails.
template <class Figures, class Measure>
Result<Shared<Figures>> measured_by_client(const Seat& seat, Measure&& measure) {
  struct Reason {
    char text[256];
  };
  auto figures = Shared<Figures>::create();
  if (!figures) return figures.error();
  auto reason = Shared<Reason>::create();
  if (!reason) return reason.error();
  auto client = Child::spawn("bench-client", seat, [&] {
    const Status done = measure(**figures);
    if (done) return 0;
    std::snprintf((*reason)->text, sizeof((*reason)->text), "%s", done.error().message().c_str());
    return 1;
  });
  if (!client) return client.error();
  const auto status = client->wait(std::chrono::minutes(2));
  if (!status) return Error{status.code(), "the client " + std::string(status.error().message())};
  if (*status != 0) return Error{Errc::call_failed, std::string("the client: ") + (*reason)->text};
  return std::move(*figures);
}

}  // namespace lrpc::bench
