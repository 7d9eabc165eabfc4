// The policy that decides when silence ends the bindings to a host, with a clock that the test advances.
#include <gtest/gtest.h>

#include "peer_silence.h"

namespace lrpc::netpath {
namespace {

using namespace std::chrono_literals;

constexpr HostAddress kHost = 0x0a00'0002;
constexpr HostAddress kOther = 0x0a00'0003;
constexpr PeerSilence::Time kBegin{1h};

TEST(PeerSilenceTest, is_over_after_the_bound_since_the_last_answer_and_not_before) {
  PeerSilence silence(30s);
  EXPECT_FALSE(silence.over(kHost, kBegin + 1h)) << "never heard: nothing to end";
  silence.heard(kHost, kBegin);
  silence.missed(kHost);
  EXPECT_FALSE(silence.over(kHost, kBegin + 30s - 1ns));
  EXPECT_TRUE(silence.over(kHost, kBegin + 30s));
  silence.heard(kHost, kBegin + 29s);
  silence.missed(kHost);
  EXPECT_FALSE(silence.over(kHost, kBegin + 58s));
  EXPECT_TRUE(silence.over(kHost, kBegin + 59s));
}

TEST(PeerSilenceTest, has_hosts_that_did_not_answer_asked_more_often_until_they_do) {
  PeerSilence silence(30s);
  silence.heard(kHost, kBegin);
  silence.heard(kOther, kBegin);
  EXPECT_EQ(silence.pause(10s), 10s);
  silence.missed(kHost);
  EXPECT_TRUE(silence.suspected(kHost));
  EXPECT_FALSE(silence.suspected(kOther));
  EXPECT_EQ(silence.pause(10s), 1s);
  EXPECT_EQ(silence.pause(50ms), 50ms);
  silence.heard(kHost, kBegin + 1s);
  EXPECT_EQ(silence.pause(10s), 10s);
  silence.missed(kHost);
  silence.keep([](HostAddress host) { return host != kHost; });
  EXPECT_EQ(silence.pause(10s), 10s) << "nobody is bound to it any more";
}

TEST(PeerSilenceTest, has_the_last_answer_awaited_until_the_bound_and_no_longer) {
  PeerSilence silence(30s);
  EXPECT_EQ(silence.patience(kHost, kBegin, 5s, 200ms), 5s);
  silence.heard(kHost, kBegin);
  silence.missed(kHost);
  EXPECT_EQ(silence.patience(kHost, kBegin + 10s, 5s, 200ms), 5s);
  EXPECT_EQ(silence.patience(kHost, kBegin + 28s, 5s, 200ms), 2s);
  EXPECT_EQ(silence.patience(kHost, kBegin + 40s, 5s, 200ms), 200ms) << "one question more";
}

TEST(PeerSilenceTest, of_a_host_that_has_missed_no_question_is_a_pause_of_our_own_and_it_is_asked_as_usual) {
  PeerSilence silence(30s);
  silence.heard(kHost, kBegin);
  EXPECT_FALSE(silence.over(kHost, kBegin + 1h));
  EXPECT_EQ(silence.patience(kHost, kBegin + 1h, 5s, 200ms), 5s);
  silence.missed(kHost);
  EXPECT_TRUE(silence.over(kHost, kBegin + 1h));
}

}  // namespace
}  // namespace lrpc::netpath
