// A policy that tells a test that an import has come.
#pragma once

#include <atomic>
#include <string_view>

#include "lrpc/nameserver.h"

namespace testing_lrpc {

/// Lets everybody do everything, and counts the imports.
class CountingPolicy final : public lrpc::nameserver::Policy {
 public:
  lrpc::Status may_export(const lrpc::nameserver::Peer& /*server*/, std::string_view /*name*/) override { return {}; }
  lrpc::Status may_import(const lrpc::nameserver::Peer& /*client*/, std::string_view /*name*/,
                          const lrpc::Credentials* /*server*/) override {
    ++imports;
    return {};
  }
  std::atomic<int> imports{0};
};

}  // namespace testing_lrpc
