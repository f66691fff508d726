static int jsctp_get_info(struct sctp_transport *t, struct sk_buff *skb)
{
	struct sctp_jsctp_info info;

	jsctp_tell(sctp_cong_priv(t), &info);
	return nla_put_64bit(skb, SCTP_DIAG_PATH_JSCTP, sizeof(info), &info,
			     SCTP_DIAG_PATH_PAD);
}
