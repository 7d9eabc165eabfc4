// The state machines for one message, by themselves.
#include <gtest/gtest.h>

#include "netrpc/protocols/paired/transfer.h"

namespace lrpc::netrpc::paired {
namespace {

using namespace std::chrono_literals;

Header data(std::uint16_t control, std::uint16_t segment) { return {.control = control, .segment = segment}; }

TEST(PairedTransferTest, all_but_the_last_segment_ask_for_an_acknowledgement_and_that_only_when_it_is_sent_again) {
  Sending sending;
  sending.begin(2);
  EXPECT_EQ(sending.control(), bits::kPleaseAck);
  EXPECT_EQ(sending.acknowledged(1), Sending::Next::send);
  EXPECT_EQ(sending.control(), bits::kLastSegment);
  EXPECT_EQ(sending.expired(3), Sending::Next::send);
  EXPECT_EQ(sending.control(), bits::kLastSegment | bits::kPleaseAck);
  EXPECT_EQ(sending.acknowledged(2), Sending::Next::sent);
  EXPECT_FALSE(sending.active());
}

TEST(PairedTransferTest, only_the_present_segment_can_be_acknowledged) {
  Sending sending;
  sending.begin(3);
  EXPECT_EQ(sending.acknowledged(2), Sending::Next::wait);
  EXPECT_EQ(sending.acknowledged(1), Sending::Next::send);
  EXPECT_EQ(sending.acknowledged(1), Sending::Next::wait);
  EXPECT_EQ(sending.segment(), 2);
  EXPECT_FALSE(sending.answered());  // not all segments have been sent
}

TEST(PairedTransferTest, an_acknowledgement_of_the_segment_before_resets_the_retry_counter) {
  Sending sending;
  sending.begin(3);
  EXPECT_EQ(sending.acknowledged(1), Sending::Next::send);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(sending.expired(2), Sending::Next::send);
    EXPECT_EQ(sending.expired(2), Sending::Next::send);
    EXPECT_EQ(sending.acknowledged(1), Sending::Next::wait);
  }
  EXPECT_EQ(sending.resends(), 20U);  // the back-off continues
  EXPECT_EQ(sending.expired(2), Sending::Next::send);
  EXPECT_EQ(sending.expired(2), Sending::Next::send);
  EXPECT_EQ(sending.expired(2), Sending::Next::failed);
}

TEST(PairedTransferTest, a_receiver_takes_segments_in_order_and_acknowledges_the_last_one_that_it_has_taken) {
  Receiving receiving;
  EXPECT_FALSE(receiving.arrived(data(bits::kPleaseAck, 2), false).take);
  auto verdict = receiving.arrived(data(bits::kPleaseAck, 1), false);
  EXPECT_TRUE(verdict.take && verdict.acknowledge);
  verdict = receiving.arrived(data(bits::kPleaseAck, 1), false);  // a duplicate
  EXPECT_TRUE(!verdict.take && verdict.acknowledge);
  verdict = receiving.arrived(data(bits::kLastSegment, 2), false);
  EXPECT_TRUE(verdict.take && !verdict.acknowledge && receiving.complete());
  verdict = receiving.arrived(data(bits::kLastSegment | bits::kPleaseAck, 2), false);
  EXPECT_TRUE(!verdict.take && verdict.acknowledge);
  verdict = receiving.arrived(data(bits::kPleaseAck, 3), false);  // after the last segment
  EXPECT_TRUE(!verdict.take && !verdict.acknowledge);
}

TEST(PairedTransferTest, what_comes_while_the_buffer_is_full_is_dropped_and_the_one_before_acknowledged_if_asked) {
  Receiving receiving;
  EXPECT_TRUE(receiving.arrived(data(bits::kPleaseAck, 1), false).take);
  auto verdict = receiving.arrived(data(bits::kPleaseAck, 2), true);
  EXPECT_TRUE(!verdict.take && verdict.acknowledge);
  EXPECT_EQ(receiving.last(), 1);
  verdict = receiving.arrived(data(bits::kLastSegment, 2), true);
  EXPECT_TRUE(!verdict.take && !verdict.acknowledge && !receiving.complete());
  EXPECT_TRUE(receiving.arrived(data(bits::kPleaseAck, 2), false).take);
}

TEST(PairedTransferTest, probes_back_off_to_the_longest_interval_while_they_are_acknowledged) {
  Probing probing;
  probing.begin(1s);
  std::vector<Duration> waits;
  for (int i = 0; i < 10; ++i) {
    waits.push_back(probing.interval());
    EXPECT_EQ(probing.expired(3), Probing::Next::send);
    EXPECT_EQ(probing.interval(), 1s);  // the time that the acknowledgement has
    probing.acknowledged(5min);
  }
  EXPECT_EQ(waits, (std::vector<Duration>{1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s}));
}

TEST(PairedTransferTest, a_probe_that_is_not_acknowledged_is_sent_again_at_the_first_interval_and_counted) {
  Probing probing;
  probing.begin(1s);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(probing.expired(3), Probing::Next::send);
    probing.acknowledged(5min);
  }
  EXPECT_EQ(probing.interval(), 16s);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(probing.expired(3), Probing::Next::send);
  EXPECT_EQ(probing.expired(3), Probing::Next::failed);
  probing.begin(1s);
  EXPECT_EQ(probing.expired(3), Probing::Next::send);
  EXPECT_EQ(probing.expired(3), Probing::Next::send);
  probing.acknowledged(5min);
  EXPECT_EQ(probing.interval(), 2s);  // the back-off has started again
  probing.acknowledged(5min);         // no probe is outstanding
  EXPECT_EQ(probing.interval(), 2s);
}

}  // namespace
}  // namespace lrpc::netrpc::paired
