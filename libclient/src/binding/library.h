// What all bindings of a process share: the library's watcher, and the set of living bindings.
#pragma once

#include <mutex>
#include <set>

#include "lrpc/detail/client/binding/binding_object.h"
#include "lrpc/detail/shim/binder/closing_again.h"
#include "lrpc/detail/shim/system/watcher.h"

namespace lrpc::client {

/// Never destroyed: bindings in static storage may outlive any static.
struct Library {
  shim::Watcher watcher{"lrpc-client"};
  shim::ClosingAgain closing_again{watcher};
  std::mutex mutex;
  std::set<BindingObject*> bindings;

  static Library& get();
  /// get() for code that has a living binding. Takes no lock: a thread about to fork may hold it.
  static Library& of_living_binding();
};

}  // namespace lrpc::client
