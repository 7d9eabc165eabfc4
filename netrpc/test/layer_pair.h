// Two simulated hosts with one layer each, for tests of layers without a header.
#pragma once

#include <gtest/gtest.h>

#include "fake_calls.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::test {

/// Two hosts, on each a layer over IP (which does not pad) and a sink over that.
struct Pair {
  explicit Pair(const ProtocolKind& kind, const Options& options = {}) {
    for (std::size_t i = 0; i < 2; ++i) {
      layer[i] = put(i, kind, net[i].ip(), options);
      sink[i] = &net[i].add<SinkProtocol>();
      const Shepherd inside(net[i].monitor());
      EXPECT_TRUE(layer[i]->open_enable(*sink[i], SimHosts::anyone()));
    }
    const Shepherd inside(net[0].monitor());
    Result<SessionRef> opened = layer[0]->open(*sink[0], net.to(1));
    EXPECT_TRUE(opened) << opened.error().message();
    session = *opened;
  }
  ~Pair() { session = {}; }
  Protocol* put(std::size_t i, const ProtocolKind& kind, Protocol& below, const Options& options) {
    std::shared_ptr<Protocol> made = make_layer(kind, net[i].host(), below, options);
    Protocol* const protocol = made.get();
    net[i].own(std::move(made));
    return protocol;
  }
  Errc push(std::string_view text) {
    const Shepherd inside(net[0].monitor());
    return session->push(net.message(0, text));
  }
  control::Statistics statistics(std::size_t i) { return test::asked<control::Statistics>(*layer[i]); }
  SimHosts net{2};
  Protocol* layer[2] = {};
  SinkProtocol* sink[2] = {};
  SessionRef session;
};

}  // namespace lrpc::netrpc::test
