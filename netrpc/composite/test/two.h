// Helpers for tests of composite protocols: micro-protocols made from a function, and a composite protocol on each of
// two hosts.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netrpc/composite/composite.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::composite {

/// A micro-protocol that is whatever a function makes of its parts.
class Any final : public MicroProtocol {
 public:
  explicit Any(std::shared_ptr<void> holds) : holds_(std::move(holds)) {}

 private:
  std::shared_ptr<void> holds_;
};
using Body = std::function<void(MicroParts&)>;
inline MicroKind kind_of(std::string name, std::vector<std::string_view> imports, Body body) {
  MicroKind kind;
  kind.name = std::move(name);
  kind.imports = std::move(imports);
  kind.make = [body = std::move(body)](MicroParts& parts) -> Result<std::unique_ptr<MicroProtocol>> {
    body(parts);
    return std::unique_ptr<MicroProtocol>(std::make_unique<Any>(nullptr));
  };
  return kind;
}
inline MicroKind exporting(MicroKind kind, std::vector<std::string_view> exports) {
  kind.exports = std::move(exports);
  return kind;
}
inline Part part(MicroKind kind, const std::vector<std::pair<std::string, std::string>>& options = {}) {
  Part made{std::move(kind), {}};
  for (const auto& [name, value] : options) made.options.set(name, value);
  return made;
}
inline const std::vector<std::string_view> kInsertion{kMessageInsertedIntoBag.name};

/// One composite protocol on each of two hosts, over IP.
struct Two {
  explicit Two(const std::function<std::vector<Part>(std::size_t host)>& parts, SimOptions options = {},
               std::size_t threads = 0)
      : net(2, 1, options) {
    for (std::size_t i = 0; i < 2; ++i) {
      const Shepherd inside(net[i].monitor());
      auto made = Framework::make(net[i].host(), "cp", net[i].ip(), parts(i), threads);
      EXPECT_TRUE(made) << made.error().message();
      layer[i] = made->get();
      net[i].own(*std::move(made));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      sink[i] = &net[i].add<SinkProtocol>();
      const Shepherd inside(net[i].monitor());
      EXPECT_TRUE(layer[i]->open_enable(*sink[i], SimHosts::anyone()));
    }
    const Shepherd inside(net[0].monitor());
    session = *layer[0]->open(*sink[0], net.to(1));
  }
  ~Two() {
    session = {};
    for (SinkProtocol* const one : sink) one->sessions.clear();
  }
  Errc push(std::string_view text) {
    const Shepherd inside(net[0].monitor());
    return session->push(Message::copy_of_long(net[0].pool(), std::as_bytes(std::span(text))));
  }
  void run() { net.world.run_for(std::chrono::milliseconds(100)); }
  [[nodiscard]] control::Statistics statistics(std::size_t host) {
    return test::asked<control::Statistics>(*layer[host]);
  }

  /// The session of IP below the first host's session.
  [[nodiscard]] Session* session_below() { return &static_cast<TransparentSession&>(*session).lower(); }

  SimHosts net;
  Framework* layer[2] = {};
  SinkProtocol* sink[2] = {};
  SessionRef session;
};

}  // namespace lrpc::netrpc::composite
